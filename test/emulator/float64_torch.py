"""What the references of test/gpu/kernel_cases.py use of PyTorch, in NumPy and float64: it stands for the module.

    case.reference(float64_torch, *[float64_torch.tensor(array) for array in arrays])
"""
import math

import numpy as np


class Tensor(np.ndarray):
    device = None

    def transpose(self, first, second):
        return np.swapaxes(self, first, second)

    def permute(self, *axes):
        return np.transpose(np.asarray(self), axes).view(Tensor)

    def square(self):
        return self * self

    def mean(self, axis, keepdim=False):
        return tensor(np.mean(np.asarray(self), axis=axis, keepdims=keepdim))

    def sqrt(self):
        return np.sqrt(self)

    def long(self):
        return np.asarray(self).astype(np.int64)

    def repeat_interleave(self, count, axis):
        return np.repeat(self, count, axis)

    def masked_fill(self, where, value):
        return tensor(np.where(where, value, np.asarray(self)))

    def softmax(self, axis):
        return softmax(self, axis)

    def triu(self, diagonal):
        return np.triu(np.asarray(self), diagonal).view(Tensor)

    def bool(self):
        return np.asarray(self).astype(bool)


def tensor(values):
    return np.asarray(values, np.float64).view(Tensor)


def ones(*shape, device=None):
    del device
    return tensor(np.ones(shape))


def relu(x):
    return tensor(np.maximum(x, 0))


def einsum(text, *factors):
    return tensor(np.einsum(text, *map(np.asarray, factors), optimize=True))


def softmax(x, axis):
    powers = np.exp(np.asarray(x) - np.max(x, axis=axis, keepdims=True))
    return tensor(powers / powers.sum(axis, keepdims=True))


class nn:  # pylint: disable=invalid-name
    class functional:  # pylint: disable=invalid-name
        @staticmethod
        def gelu(x):
            erf = np.vectorize(math.erf, otypes=[np.float64])
            return tensor(x * 0.5 * (1 + erf(np.asarray(x) * math.sqrt(0.5))))

        @staticmethod
        def silu(x):
            return tensor(x / (1 + np.exp(-x)))

        @staticmethod
        def layer_norm(x, _shape, scale, shift, epsilon):
            x = np.asarray(x)
            centred = x - x.mean(-1, keepdims=True)
            return tensor(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * scale + shift)

        @staticmethod
        def pad(x, pads):
            return tensor(np.pad(x, [(0, 0), (0, 0), tuple(pads[2:]), tuple(pads[:2])]))

        @staticmethod
        def conv2d(x, weights, bias, steps, _pads, dilations, groups):
            """Of one group, or as many as there are channels."""
            x, weights = np.asarray(x), np.asarray(weights)
            taps = weights.shape[2:]
            sizes = [(x.shape[2 + i] - (taps[i] - 1) * dilations[i] - 1) // steps[i] + 1 for i in (0, 1)]
            sums = np.zeros((x.shape[0], weights.shape[0], *sizes))
            for i, j in np.ndindex(*taps):
                rows, columns = (slice(at * d, at * d + (size - 1) * step + 1, step)
                                 for at, d, size, step in zip((i, j), dilations, sizes, steps))
                seen, factors = x[:, :, rows, columns], weights[:, :, i, j]
                sums += seen * factors[None, :, 0, None, None] if groups > 1 else np.einsum("nchw,oc->nohw", seen, factors, optimize=True)
            return tensor(sums + np.asarray(bias)[None, :, None, None])
