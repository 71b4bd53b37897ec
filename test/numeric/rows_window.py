"""Pooling, reductions, normalisation, softmax: ops that read a window or an axis."""

import math

import numpy as np

from numeric_row import F32, FLOATS, HALVES, IMAGE_CHANNELS, NONE, C, R, T, W

# ---- Pooling ----
for op in ("MaxPool", "AveragePool"):
    R(op, ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[3, 3], _tol=4)
    R(op, ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[2, 2], strides=[2, 2], _tol=4)
    R(op, ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], _tol=4)
    R(op, ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[3, 2], strides=[2, 1], pads=[0, 1, 1, 0], _tol=4)
    R(op, ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, _tol=4)
    R(op, ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[2, 2], auto_pad="SAME_UPPER", _tol=4)
    R(op, ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[3, 3], auto_pad="SAME_LOWER", strides=[2, 2], _tol=4)
    R(op, ["N,C,L"], [(2, 3, 9), (1, 1, 64)], F32, kernel_shape=[3], strides=[2], pads=[1, 1], _tol=4)
    R(op, ["N,C,5,6,7"], [(2, 3)], F32, kernel_shape=[2, 3, 2], strides=[1, 2, 2], _tol=4)
R("MaxPool", ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[3, 3], dilations=[2, 2])
R("MaxPool", [T("N,C,H,W", "distinct")], IMAGE_CHANNELS, F32, kernel_shape=[3, 3], strides=[2, 2], _outputs=2)
R("MaxPool", [T("N,C,H,W", "normal")], IMAGE_CHANNELS, ["u8", "i8"], kernel_shape=[2, 2])
R("MaxPool", [T("N,C,H,W")], IMAGE_CHANNELS, ["f64", "f16"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
R("AveragePool", ["N,C,H,W"], IMAGE_CHANNELS, F32, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
  count_include_pad=1, _tol=4)
R("AveragePool", ["N,C,H,W"], IMAGE_CHANNELS, ["f16"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], _tol=4)
R("GlobalAveragePool", ["N,C,H,W"], IMAGE_CHANNELS, [*F32, "f16"], lambda x: x.mean((2, 3), keepdims=True), _tol=8)
R("GlobalMaxPool", ["N,C,H,W"], IMAGE_CHANNELS, F32, lambda x: x.max((2, 3), keepdims=True))
R("LpPool", ["N,C,H,W"], IMAGE_CHANNELS[:3], F32, kernel_shape=[3, 3], strides=[2, 2], p=2, _tol=8)

# ---- Reductions: axes as an attribute (before opset 18) and as an input ----


def log_sum_exp(x, axis, keepdims):
    return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))


REDUCTIONS = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min,
              "ReduceProd": np.prod, "ReduceL1": lambda x, **k: np.abs(x).sum(**k),
              "ReduceL2": lambda x, **k: np.sqrt((x * x).sum(**k)), "ReduceSumSquare": lambda x, **k: (x * x).sum(**k),
              "ReduceLogSum": lambda x, **k: np.log(x.sum(**k)), "ReduceLogSumExp": log_sum_exp}
CUBE = [(3, 5, 7), (1, 1, 1), (2, 33, 17), (4, 16, 65)]


def reduction(op, axes, keepdims):
    return lambda x, *_: REDUCTIONS[op](x, axis=axes, keepdims=bool(keepdims))


def summed(op, axes):
    """How many terms of both signs make a sum."""
    return (lambda *sizes: math.prod(sizes[axis] for axis in axes)) if op == "ReduceSum" else 1


for op in REDUCTIONS:
    data = "positive" if op == "ReduceLogSum" else "unit" if op == "ReduceProd" else "small"
    for axes, keepdims in [((1,), 1), ((2,), 0), ((0, 2), 0), ((0, 1, 2), 1)]:
        R(op, [T("A,B,C", data), C(list(axes))], CUBE, F32, reduction(op, axes, keepdims), keepdims=keepdims, _tol=16,
          _terms=summed(op, axes))
    R(op, [T("A,B,C", data)], CUBE, F32, reduction(op, (-1,), 1), axes=[-1], _opset=11, _tol=16)
    R(op, [T("A,B,C", data)], CUBE, F32, reduction(op, None, 0), keepdims=0, _tol=32,
      _terms=summed(op, (0, 1, 2)))
    R(op, [T("A,B", data), C([1])], [(3, 7)], ["f64", *HALVES], reduction(op, (1,), 1), _tol=4)
for op in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceSumSquare"):
    R(op, [T("A,B", "bit"), C([1])], [(3, 7), (5, 1)], ["i32", "i64"],
      lambda x, *_, op=op: np.asarray(REDUCTIONS[op](x, axis=1, keepdims=True)).astype(x.dtype))
R("ReduceMax", [T("A,B", "extremes"), C([0])], [(3, 7)], ["i8", "u8"], lambda x, *_: x.max(0, keepdims=True))
R("ReduceMean", [T("N,C,H,W"), C([2, 3])], [(2, 3, 7, 9), (1, 17, 8, 8)], F32, lambda x, _: x.mean((2, 3), keepdims=True),
  _tol=8)
R("ReduceSum", [T("A,B"), C([1])], [(3, 0), (0, 3)], F32, lambda x, _: x.sum(1, keepdims=True))
R("ReduceMax", [T("A,B", "special"), C([1])], [(3, 7)], F32, lambda x, _: x.max(1, keepdims=True))
for op, ref in [("ArgMax", np.argmax), ("ArgMin", np.argmin)]:
    for axis in (0, 1, -1):
        R(op, [T("A,B,C", "distinct")], CUBE, F32, lambda x, ref=ref, a=axis: np.expand_dims(ref(x, axis=a), a), axis=axis)
    R(op, [T("A,B", "bit")], [(3, 31)], ["i32", "u8", "i64"], lambda x, ref=ref: ref(x, axis=1), axis=1, keepdims=0)
    R(op, [T("A,B", "bit")], [(3, 31)], F32, lambda x, ref=ref: 30 - ref(x[:, ::-1], axis=1), axis=1, keepdims=0,
      select_last_index=1)
for exclusive in (0, 1):
    for reverse in (0, 1):
        R("CumSum", ["A,B", C(1)], [(3, 7), (1, 65), (4, 1)], [*F32, "i32", "i64"], exclusive=exclusive, reverse=reverse,
          _tol=16)

# Axes that only the run knows.
for op in REDUCTIONS:
    data = "positive" if op == "ReduceLogSum" else "unit" if op == "ReduceProd" else "small"
    for keepdims in (0, 1):
        R(op, [T("A,B,C", data), T("1", "index 3", "i64")], CUBE[:3], F32,
          lambda x, a, op=op, keep=keepdims: REDUCTIONS[op](x, axis=tuple(a), keepdims=bool(keep)), keepdims=keepdims,
          _tol=32)
R("ReduceMax", [T("A,B,C", "extremes"), T("1", "index 3", "i64")], CUBE[:3], ["u8", "i8"],
  lambda x, a: x.max(tuple(a), keepdims=True))
R("ReduceMean", [T("A,B", "wide"), C([1])], [(3, 7), (2, 64)], ["i32", "i64", "i8", "u8"],
  lambda x, *_: np.trunc(x.astype(np.float64).mean(1, keepdims=True)).astype(x.dtype))
R("CumSum", ["A,B", T("", "index 2", "i64")], [(3, 7), (1, 65), (4, 1)], F32, lambda x, axis: x.cumsum(int(axis)), _tol=16)
R("CumProd", [T("A,B", "unit"), C(1)], [(3, 7), (1, 65), (4, 1)], F32, lambda x, _: x.cumprod(1), _opset=26, _tol=16)

# ---- Softmax and normalisation ----


def softmax(axis):
    def make(x):
        y = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
        return y / y.sum(axis=axis, keepdims=True)

    return make


ROWS = [(3, 5, 7), (1, 1, 1), (2, 3, 64), (2, 2, 65), (1, 33, 128), (0, 3, 4)]
for axis in (-1, 1, 0):
    R("Softmax", [T("A,B,C", "wide")], ROWS, F32, softmax(axis), axis=axis, _tol=8)
    R("LogSoftmax", [T("A,B,C", "wide")], ROWS, F32, lambda x, a=axis: np.log(softmax(a)(x)), axis=axis, _tol=8)
R("Softmax", [T("A,B,C", "wide")], ROWS, ["f64", *HALVES], softmax(-1), _tol=4)
R("t = Softmax <axis=1> (x0) u = Log(t) y0 = Add(t, u)", [T("A,B,C", "wide")], ROWS[:5], F32, _tol=16)
R("Softmax", [T("A,B,C", "small")], CUBE, F32, lambda x: softmax(1)(x.reshape(x.shape[0], -1)).reshape(x.shape), axis=1,
  _opset=11, _tol=8)
R("Hardmax", [T("A,B", "distinct")], [(3, 7), (1, 64)], F32, lambda x: (x == x.max(1, keepdims=True)) * 1.0, axis=1)


def layer_norm(axis, epsilon=1e-5):
    epsilon = float(np.float32(epsilon))  # ONNX keeps 32 bits of it

    def make(x, scale, bias=0.0):
        axes = tuple(range(axis % x.ndim, x.ndim))
        centred = x - x.mean(axes, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon) * scale + bias

    return make


R("LayerNormalization", ["A,B,C", "C", "C"], ROWS[:5], FLOATS, layer_norm(-1), _tol=16)
R("LayerNormalization", ["A,B,C", "B,C", "B,C"], CUBE, F32, layer_norm(1), axis=1, _tol=16)
R("LayerNormalization", ["A,B,48", W("48")], [(3, 5), (1, 1), (2, 33)], F32, layer_norm(-1, 1e-3), epsilon=1e-3, _tol=16)
R("RMSNormalization", ["A,B,C", "C"], CUBE, F32, lambda x, s: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * s,
  _opset=23, _tol=16)


def channels(v):
    return v.reshape(-1, 1, 1)


def instance_norm(x, scale, bias):
    centred = x - x.mean((2, 3), keepdims=True)
    return centred / np.sqrt((centred**2).mean((2, 3), keepdims=True) + 1e-5) * channels(scale) + channels(bias)


R("BatchNormalization", ["N,C,H,W", "C", "C", "C", T("C", "positive")], IMAGE_CHANNELS, [*F32, "f16"],
  lambda x, s, b, m, v: (x - channels(m)) / np.sqrt(channels(v) + 1e-5) * channels(s) + channels(b), _tol=16)
R("InstanceNormalization", ["N,C,H,W", "C", "C"], IMAGE_CHANNELS[:4], F32, instance_norm, _tol=64)
R("LRN", ["N,C,H,W"], IMAGE_CHANNELS[:4], F32, size=3, alpha=0.01, beta=0.75, bias=1.5, _tol=16)
R("MeanVarianceNormalization", ["N,3,H,W"], [(2, 7, 9), (1, 8, 8)], F32, axes=[0, 2, 3], _tol=64)
R("LpNormalization", ["A,B"], [(3, 7), (1, 64)], F32, lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)), axis=1, p=2,
  _tol=16)
R("Dropout", ["A,B", C(0.5, "f32"), C(False, "bool")], [(3, 7)], F32, lambda x, *_: x)
R("Dropout", ["A,B", NONE, C(False, "bool")], [(3, 7)], F32, lambda x, *_: x)


def layer_norm_statistics(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean)**2).mean(-1, keepdims=True) + 1e-5)
    return (x - mean) * inverse * scale + bias, mean, inverse


def batch_norm_training(x, scale, bias, mean, variance):
    new_mean, new_variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    y = (x - channels(new_mean)) / np.sqrt(channels(new_variance) + 1e-5) * channels(scale) + channels(bias)
    return y, mean * 0.75 + new_mean * 0.25, variance * 0.75 + new_variance * 0.25


def group_norm(x, scale, bias):
    groups = x.reshape(x.shape[0], 4, -1)
    centred = groups - groups.mean(2, keepdims=True)
    y = centred / np.sqrt((centred**2).mean(2, keepdims=True) + 1e-5)
    return y.reshape(x.shape) * channels(scale) + channels(bias)


def group_norm_by_group(x, scale, bias):
    return group_norm(x, scale.repeat(3), bias.repeat(3))


R("LayerNormalization", ["A,B,D", "D", "D"], CUBE, F32, layer_norm_statistics, _outputs=3, _tol=32)
R("RMSNormalization", ["A,B,C", "C"], CUBE[:2], HALVES,
  lambda x, s: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * s, _opset=23, _tol=4)
R("BatchNormalization", ["N,3,H,W", "3", "3", "3", T("3", "positive")], [(2, 7, 9), (1, 8, 8)], F32, batch_norm_training,
  training_mode=1, momentum=0.75, _outputs=3, _tol=64)
R("GroupNormalization", ["N,12,H,W", "12", "12"], [(2, 7, 9), (1, 8, 8)], [*F32, "f16"], group_norm,
  num_groups=4, _opset=21, _tol=64)
R("GroupNormalization", ["N,12,H,W", "4", "4"], [(2, 7, 9), (1, 8, 8)], F32, group_norm_by_group, num_groups=4, _opset=18,
  _tol=64)
R("LpNormalization", ["A,B"], [(3, 7), (1, 64)], F32, lambda x: x / np.abs(x).sum(0, keepdims=True), axis=0, p=1, _tol=16)

# ---- Losses ----


def nll(x, target, weight, ignored, reduction):
    chosen = np.take_along_axis(x, np.where(target == ignored, 0, target)[:, None], 1)[:, 0]
    weights = np.where(target == ignored, 0, weight[np.where(target == ignored, 0, target)])
    losses = -chosen * weights
    return {"none": losses, "sum": losses.sum(), "mean": losses.sum() / weights.sum()}[reduction]


def cross_entropy(x, target, weight):
    return nll(np.log(softmax(1)(x)), target, weight, -1, "mean"), np.log(softmax(1)(x))


for reduction in ("none", "sum", "mean"):
    R("NegativeLogLikelihoodLoss", ["N,5,H", T("N,H", "class", "i64"), T("5", "positive")], [(3, 7), (1, 1)], F32,
      lambda x, t, w, r=reduction: nll(x, t, w, 2, r), reduction=reduction, ignore_index=2, _tol=16)
R("SoftmaxCrossEntropyLoss", ["N,5,H", T("N,H", "class", "i64"), T("5", "positive")], [(3, 7), (1, 1)], F32,
  cross_entropy, _outputs=2, _tol=16)
