"""Ops as they were in opsets 1 to 7."""

import numpy as np

from numeric_row import BOOL, ELEMENTWISE, F32, FLOATS, IMAGE_CHANNELS, INTS, C, R, T, W

FLT_MAX = float(np.finfo(np.float32).max)
CUBES = [(3, 5, 7), (1, 1, 1), (2, 64, 3), (0, 4, 5), (4, 5, 0)]


def middle(function):
    """The second input lies along the middle of three dimensions."""
    return lambda a, b: function(a, b[:, None])


def channel(x, vector):
    return vector.reshape(-1, *[1] * (x.ndim - 2))


def batch_norm(x, scale, bias, mean, variance):
    factor = scale / np.sqrt(variance + 1e-5)
    return x * channel(x, factor) + channel(x, bias - mean * factor)


def batch_norm_training(x, scale, bias, mean, variance):
    axes = tuple(i for i in range(x.ndim) if i != 1)
    new_mean, new_variance = x.mean(axes), x.var(axes)
    return [batch_norm(x, scale, bias, new_mean, new_variance), 0.9 * mean + 0.1 * new_mean,
            0.9 * variance + 0.1 * new_variance, new_mean, new_variance]


def selu(x):
    return np.where(x > 0, 1.0507 * x, 1.0507 * 1.6732 * np.expm1(x))


# ---- broadcast and axis ----
for op, ref in [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)]:
    R(op, ["A,B,C", "B"], CUBES, FLOATS, middle(ref), broadcast=1, axis=1, _opset=6)
    R(op, ["A,B,C", "B,C"], CUBES, F32, ref, broadcast=1, consumed_inputs=[0, 0], _opset=1)
    R(op, ["A,B,C", ""], CUBES, F32, ref, broadcast=1, axis=0, _opset=6)
    R(op, ["A,B", "A,B"], ELEMENTWISE, F32, ref, _opset=6)
R("Add", ["A,B,C", "A,1"], CUBES, F32, lambda a, b: a + b[:, :, None], broadcast=1, axis=0, _opset=6)
R("Add", ["A,B,C", "1,1"], CUBES, F32, np.add, broadcast=1, axis=0, _opset=6)
R("Add", ["A,B,C", "C"], CUBES, F32, np.add, broadcast=1, axis=-1, _opset=6)
R("Div", ["A,B,C", T("B", "nonzero")], CUBES, F32, middle(np.divide), broadcast=1, axis=1, _opset=6)
R("Pow", [T("A,B,C", "positive"), "B"], CUBES, F32, middle(np.power), broadcast=1, axis=1, _opset=6, _tol=4)
for op, ref in [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)]:
    R(op, ["A,B,C", "B"], CUBES, BOOL, middle(ref), broadcast=1, axis=1, _opset=1)
for op, ref in [("Less", np.less), ("Greater", np.greater)]:
    R(op, ["A,B,C", "B"], CUBES, F32, middle(ref), broadcast=1, axis=1, _opset=1)
R("Equal", ["A,B,C", "B"], CUBES, ["i32", "i64", "bool"], middle(np.equal), broadcast=1, axis=1, _opset=1)
for shape in ("7", "1", "1,7", "M,1", ""):
    R("Gemm", ["M,8", W("8,7"), shape], [(5,), (1,), (64,)], F32, lambda a, b, c: 0.5 * (a @ b) + 2 * c,
      alpha=0.5, beta=2.0, broadcast=1, _opset=6, _tol=8)

# ---- Other forms ----
R("Max", ["A,B", "A,B", "A,B"], ELEMENTWISE, F32, lambda a, b, c: np.maximum(np.maximum(a, b), c), _opset=7)
R("Mean", ["A,B", "A,B"], ELEMENTWISE, F32, lambda a, b: (a + b) / 2, consumed_inputs=[0, 0], _opset=1)
R("PRelu", ["N,C,H,W", "C"], IMAGE_CHANNELS, F32, lambda x, s: np.where(x < 0, x * channel(x, s), x), _opset=6)
R("PRelu", ["N,C", "1"], ELEMENTWISE, F32, lambda x, s: np.where(x < 0, x * s, x), _opset=1)
R("BatchNormalization", ["N,C,H,W", "C", "C", "C", T("C", "positive")], IMAGE_CHANNELS, F32, batch_norm,
  is_test=1, consumed_inputs=[0, 0, 0, 1, 1], _opset=1, _tol=16)
R("BatchNormalization", ["N,C,H,W", "C", "C", "C", T("C", "positive")], [(2, 3, 7, 9), (2, 17, 9, 5)], F32,
  batch_norm_training, _opset=6, _outputs=5, _tol=64)
R("Dropout", ["A,B"], ELEMENTWISE, F32, lambda x: x, is_test=1, _opset=6)
R("Selu", ["A,B"], ELEMENTWISE, F32, selu, _opset=1, _tol=4)
R("Clip", ["A,B"], ELEMENTWISE, F32, lambda x: np.maximum(x, -0.5), min=-0.5, _opset=1)
R("Clip", [T("A,B", "special")], ELEMENTWISE, F32, lambda x: np.minimum(np.maximum(x, -0.5), FLT_MAX), min=-0.5,
  _opset=6)
R("Concat", ["A,B", "A,B"], ELEMENTWISE, F32, lambda a, b: np.concatenate([a, b], 1), _opset=1)
R("Reshape", ["A,B,6"], ELEMENTWISE[:6], F32, lambda x: x.reshape(x.shape[0], -1, 3), shape=[0, -1, 3], _opset=1)
R("Tile", ["A,B", C([3.0], "f32"), C([1.0], "f32")], ELEMENTWISE, F32, lambda x, *_: np.tile(x, (1, 3)), _opset=1)
R("Pad", ["A,B"], ELEMENTWISE, F32, lambda x: np.pad(x, [(1, 2), (0, 3)], constant_values=1.5),
  paddings=[1, 0, 2, 3], value=1.5, _opset=1)
R("Split", ["A,6"], [(1,), (7,), (64,)], F32, lambda x: [x[:, :2], x[:, 2:]], axis=1, split=[2, 4], _opset=1,
  _outputs=2)
R("Split", ["A,6", C([2.0, 4.0], "f32")], [(1,), (7,), (64,)], F32, lambda x, _: [x[:, :2], x[:, 2:]], axis=1,
  _opset=1, _outputs=2)
R("Upsample", ["N,C,H,W"], IMAGE_CHANNELS, F32, lambda x: x.repeat(2, 2).repeat(3, 3), height_scale=2.0,
  width_scale=3.0, _opset=1)
R("GlobalLpPool", ["N,C,H,W"], IMAGE_CHANNELS, F32,
  lambda x: (np.abs(x) ** 3).sum((2, 3), keepdims=True) ** (1 / 3), p=3.0, _opset=1, _tol=8)
for name, kind in [("INT32", np.int32), ("BOOL", np.bool_), ("FLOAT16", np.float16)]:
    R(f'y0 = Cast <to = "{name}"> (x0)', ["A,B"], ELEMENTWISE, F32,
      lambda x, kind=kind: x.astype(np.float32).astype(kind), _opset=1)
R('y0 = Cast <to = "FLOAT"> (x0)', ["A,B"], ELEMENTWISE, INTS, lambda x: x.astype(np.float32), _opset=5)
