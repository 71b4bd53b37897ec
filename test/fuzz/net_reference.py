"""What the ops of random networks compute, in float64 and with NumPy alone, and how far a machine may be off.

A rule has three parts that are functions of the attributes and the inputs as arrays:
  compute  the results: one array or a list of them
  terms    the size of what is added up for each element of a result, which a rounding error is in proportion to;
           None where nothing is rounded (data is only moved, or chosen)
  jumps    for ops that are not continuous: how far each element is from a place where the result jumps
and
  rounds   for ops that round to few values: the number of the input that decides what is near the middle of two
"""

import dataclasses
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

RULES = {}


@dataclasses.dataclass(frozen=True)
class Rule:
    compute: object
    terms: object = None
    jumps: object = None
    rounds: object = None


def rule(name, compute, terms=None, jumps=None, rounds=None):
    RULES[name] = Rule(compute, terms, jumps, rounds)


# ---- Elementwise ----

def sizes(attrs, results, *inputs):
    """The result and all inputs: for functions whose error is a few roundings of either."""
    floats = [np.abs(x) for x in [*results, *inputs] if x is not None and x.dtype == np.float64]
    return [sum(floats, 0.0) + np.zeros_like(r) for r in results]


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


erf = np.vectorize(math.erf, otypes=[np.float64])


def divide(x, y):
    return x / y if x.dtype == np.float64 else np.trunc(x.astype(np.float64) / y).astype(x.dtype)


def modulo(attrs, x, y):
    return np.fmod(x, y) if attrs.get("fmod") else np.mod(x, y)


def clip(attrs, x, low=None, high=None):
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def prelu(attrs, x, slope):
    return np.where(x < 0, slope * x, x)


UNARY = {
    "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Sin": np.sin, "Cos": np.cos, "Tanh": np.tanh, "Erf": erf,
    "Atan": np.arctan, "Sigmoid": sigmoid, "Softplus": softplus, "Softsign": lambda x: x / (1 + np.abs(x)),
    "Reciprocal": lambda x: 1 / x, "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * np.tanh(softplus(x)), "Gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))}
for name, function in UNARY.items():
    rule(name, lambda attrs, x, f=function: f(x), sizes)
for name, function in {"Relu": lambda x: np.maximum(x, 0), "Abs": np.abs, "Neg": np.negative, "Identity": lambda x: x,
                       "Not": np.logical_not}.items():
    rule(name, lambda attrs, x, f=function: f(x))
rule("LeakyRelu", lambda a, x: np.where(x >= 0, x, a["alpha"] * x), sizes)
rule("Elu", lambda a, x: np.where(x > 0, x, a["alpha"] * np.expm1(np.minimum(x, 0))), sizes)
rule("HardSigmoid", lambda a, x: np.clip(a["alpha"] * x + a["beta"], 0, 1), sizes)
rule("PRelu", prelu, sizes)
for name, function in {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": divide,
                       "Pow": lambda x, y: np.power(x, y.astype(x.dtype))}.items():
    rule(name, lambda attrs, x, y, f=function: f(x, y), sizes)
for name, function in {"Max": np.maximum, "Min": np.minimum, "And": np.logical_and, "Or": np.logical_or,
                       "Xor": np.logical_xor}.items():
    rule(name, lambda attrs, x, y, f=function: f(x, y))
rule("Sum", lambda attrs, *x: sum(x[1:], x[0]), sizes)
rule("Mean", lambda attrs, *x: sum(x[1:], x[0]) / len(x), sizes)
rule("Clip", clip)
rule("Where", lambda attrs, c, x, y: np.where(c, x, y))


def between(x, y):
    return np.abs(x.astype(np.float64) - y)


def to_integer(x):
    return np.abs(x - np.round(x)) + (np.abs(x) < 0.5)  # towards zero: nothing happens at zero itself


for name, function in {"Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
                       "LessOrEqual": np.less_equal, "Equal": np.equal}.items():
    rule(name, lambda attrs, x, y, f=function: f(x, y), None, lambda attrs, x, y: between(x, y))
for name, function in {"Floor": np.floor, "Ceil": np.ceil}.items():
    rule(name, lambda attrs, x, f=function: f(x), None, lambda attrs, x: np.abs(x - np.round(x)))
rule("Round", lambda attrs, x: np.round(x), None, lambda attrs, x: np.abs(x - np.floor(x) - 0.5))
rule("Sign", lambda attrs, x: np.sign(x), None, lambda attrs, x: np.abs(x))
rule("Mod", modulo, None, lambda attrs, x, y: np.abs(x / y - np.round(x / y)))
TYPES = {1: np.float64, 10: np.float64, 11: np.float64, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_}


def cast(attrs, x):
    if x.dtype == np.float64 and TYPES[attrs["to"]] not in (np.float64, np.bool_):
        return np.trunc(x).astype(np.int64).astype(TYPES[attrs["to"]])
    return x.astype(TYPES[attrs["to"]])


def cast_jumps(attrs, x):
    if x.dtype != np.float64 or TYPES[attrs["to"]] == np.float64:
        return np.full(x.shape, np.inf)
    return np.abs(x) if TYPES[attrs["to"]] == np.bool_ else to_integer(x)


rule("Cast", cast, sizes, cast_jumps)


# ---- Quantised ----

LIMITS = {np.dtype(t): (np.iinfo(t).min, np.iinfo(t).max) for t in (np.uint8, np.int8)}


def along(attrs, x, vector):
    """|vector| laid along attrs' axis of x."""
    if vector.ndim == 0:
        return vector
    shape = [1] * x.ndim
    shape[attrs.get("axis", 1)] = -1
    return vector.reshape(shape)


def quantize(attrs, x, scale, zero):
    low, high = LIMITS[zero.dtype]
    return np.clip(np.rint(x / along(attrs, x, scale)) + along(attrs, x, zero), low, high).astype(zero.dtype)


def dequantize(attrs, x, scale, zero):
    return (x.astype(np.float64) - along(attrs, x, zero)) * along(attrs, x, scale)


rule("QuantizeLinear", quantize, rounds=0)
rule("DequantizeLinear", dequantize, sizes)


# ---- Moving data ----

def reshape(attrs, x, shape):
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape.tolist())])


def flatten(attrs, x):
    axis = attrs.get("axis", 1)
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def slice_of(attrs, x, starts, ends, axes, steps):
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist()):
        index[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(index)]


def split(attrs, x, parts):
    axis = attrs["axis"]
    if parts.sum() != x.shape[axis]:
        raise ValueError("the parts are not the whole")
    return np.split(x, np.cumsum(parts)[:-1], axis)


def pad(attrs, x, pads, value=None):
    n = x.ndim
    width = [(int(pads[i]), int(pads[n + i])) for i in range(n)]
    mode = attrs.get("mode", "constant")
    if mode == "constant":
        return np.pad(x, width, constant_values=0 if value is None else value)
    if any(max(pair) >= size for pair, size in zip(width, x.shape) if max(pair)):
        raise ValueError("more is mirrored than is there")
    return np.pad(x, width, mode=mode)


def gather(attrs, x, indices):
    return np.take(x, indices, axis=attrs["axis"])


def gather_elements(attrs, x, indices):
    if any(n > x.shape[i] for i, n in enumerate(indices.shape) if i != attrs["axis"]):
        raise ValueError("indices reach beyond the data")
    x = x[tuple(slice(None if i == attrs["axis"] else n) for i, n in enumerate(indices.shape))]
    return np.take_along_axis(x, np.where(indices < 0, indices + x.shape[attrs["axis"]], indices), attrs["axis"])


def gather_nd(attrs, x, indices):
    return x[tuple(np.moveaxis(indices, -1, 0))]


def scatter_nd(attrs, x, indices, updates):
    y = x.copy()
    y[tuple(np.moveaxis(indices, -1, 0))] = updates
    return y


def expand(attrs, x, shape):
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist()))).copy()


def depth_to_space(attrs, x):
    n, c, h, w = x.shape
    b = attrs["blocksize"]
    if attrs["mode"] == "DCR":
        y = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // (b * b), h * b, w * b)


def space_to_depth(attrs, x):
    n, c, h, w = x.shape
    b = attrs["blocksize"]
    y = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * b * b, h // b, w // b)


rule("Transpose", lambda a, x: x.transpose(a["perm"]))
rule("Reshape", reshape)
rule("Flatten", flatten)
rule("Slice", slice_of)
rule("Split", split)
rule("Concat", lambda a, *x: np.concatenate(x, a["axis"]))
rule("Pad", pad)
rule("Gather", gather)
rule("GatherElements", gather_elements)
rule("GatherND", gather_nd)
rule("ScatterND", scatter_nd)
rule("Expand", expand)
rule("Tile", lambda a, x, repeats: np.tile(x, repeats))
rule("Squeeze", lambda a, x, axes: np.squeeze(x, tuple(axes.tolist())))
rule("Unsqueeze", lambda a, x, axes: np.expand_dims(x, tuple(axes.tolist())))
rule("DepthToSpace", depth_to_space)
rule("SpaceToDepth", space_to_depth)
rule("Shape", lambda a, x: np.array(x.shape, np.int64))
rule("Trilu", lambda a, x: np.triu(x) if a.get("upper", 1) else np.tril(x))


# ---- Products ----

def gemm(attrs, a, b, c=None):
    y = attrs.get("alpha", 1.0) * ((a.T if attrs.get("transA") else a) @ (b.T if attrs.get("transB") else b))
    return y if c is None else y + attrs.get("beta", 1.0) * c


MANY_TERMS = 256  # of one sum: one after the other, more of them lose more than a few roundings


def positive(compute):
    """The terms of a sum of products: the same sum without signs."""
    def terms(attrs, results, *inputs):
        x, y = (*inputs, None)[:2]
        count = x.size / max(1, results[0].size) if y is None or y.dtype != np.float64 else max(x.shape[-1], y[0].size)
        inputs = [np.abs(x) if x is not None and x.dtype == np.float64 else x for x in inputs]
        attrs = {k: abs(v) if k in ("alpha", "beta") else v for k, v in attrs.items()}
        return [compute(attrs, *inputs) * max(1, count / MANY_TERMS)]

    return terms


def summed(name, compute):
    rule(name, compute, positive(compute))


def windows(x, kernel, strides, dilations, pads, fill):
    """[..., positions, kernel]"""
    n = len(kernel)
    lead = x.ndim - n
    x = np.pad(x, [(0, 0)] * lead + [(pads[i], pads[n + i]) for i in range(n)], constant_values=fill)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    view = sliding_window_view(x, extents, tuple(range(lead, lead + n)))
    keep = [slice(None)] * lead + [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
    return view[tuple(keep)]


def same_pads(attrs, size, kernel, stride, dilation):
    """What auto_pad adds before and after, so that there is a window for each |stride| elements."""
    more = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return (more // 2, more - more // 2) if attrs["auto_pad"] == "SAME_UPPER" else (more - more // 2, more // 2)


def window_attrs(attrs, x, kernel):
    n = len(kernel)
    strides, dilations = (attrs.get(key, [1] * n) for key in ("strides", "dilations"))
    pads = list(attrs.get("pads", [0] * 2 * n))
    for i, size in enumerate(x.shape[x.ndim - n:]):
        if "auto_pad" in attrs:
            pads[i], pads[n + i] = same_pads(attrs, size, kernel[i], strides[i], dilations[i])
        if attrs.get("ceil_mode"):  # one window more, that begins before what is added at the end
            left = (size + pads[i] + pads[n + i] - (kernel[i] - 1) * dilations[i] - 1) % strides[i]
            begin = size + pads[i] + pads[n + i] - (kernel[i] - 1) * dilations[i] - 1 - left + strides[i]
            if left and begin < size + pads[i]:
                pads[n + i] += strides[i] - left
    return strides, dilations, pads


def conv(attrs, x, w, b=None):
    n = x.ndim - 2
    group = attrs.get("group", 1)
    view = windows(x, w.shape[2:], *window_attrs(attrs, x, w.shape[2:]), 0.0)
    inner = [1, *range(2 + n, 2 + 2 * n)]
    if group == x.shape[1] and w.shape[1] == 1 and w.shape[0] == group:
        y = np.einsum(view, [0, 1, *range(2, 2 + 2 * n)], w[:, 0], [1, *range(2 + n, 2 + 2 * n)], list(range(2 + n)))
    else:
        views, weights = np.split(view, group, 1), np.split(w, group, 0)
        parts = [np.tensordot(v, u, (inner, list(range(1, 2 + n)))) for v, u in zip(views, weights)]
        y = np.moveaxis(np.concatenate(parts, -1), -1, 1)
    return y if b is None else y + b.reshape(-1, *[1] * n)


def conv_transpose(attrs, x, w, b=None):
    n = x.ndim - 2
    strides, dilations, pads = window_attrs(attrs, x, w.shape[2:])
    group, kernel = attrs.get("group", 1), w.shape[2:]
    extra = attrs.get("output_padding", [0] * n)
    full = [(x.shape[2 + i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i] for i in range(n)]
    if any(size < pads[i] + pads[n + i] for i, size in enumerate(full)):
        raise ValueError("more is cut off than is there")
    y = np.zeros((x.shape[0], w.shape[1] * group, *full))
    out = w.shape[1]
    for place in np.ndindex(*kernel):
        at = tuple(slice(p * d, p * d + (size - 1) * s + 1, s)
                   for p, d, size, s in zip(place, dilations, x.shape[2:], strides))
        for g, (part, weight) in enumerate(zip(np.split(x, group, 1), np.split(w, group, 0))):
            product = np.tensordot(weight[(slice(None), slice(None), *place)], part, ((0,), (1,)))
            y[(slice(None), slice(g * out, (g + 1) * out), *at)] += np.moveaxis(product, 0, 1)
    y = y[(slice(None), slice(None), *(slice(pads[i], full[i] - pads[n + i]) for i in range(n)))]
    return y if b is None else y + b.reshape(-1, *[1] * n)


summed("MatMul", lambda a, x, y: x @ y)
summed("Gemm", gemm)
summed("Einsum", lambda a, *x: np.einsum(a["equation"], *x))
summed("Conv", conv)
summed("ConvTranspose", conv_transpose)


# ---- Windows ----

def pooled(x, attrs, fill):
    kernel = attrs["kernel_shape"]
    n = len(kernel)
    return windows(x, kernel, *window_attrs(attrs, x, kernel), fill), tuple(range(x.ndim, x.ndim + n))


def max_pool(attrs, x):
    view, axes = pooled(x, attrs, -np.inf if x.dtype == np.float64 else LIMITS[x.dtype][0])
    return view.max(axes)


def average_pool(attrs, x):
    view, axes = pooled(x, attrs, 0.0)
    if attrs.get("count_include_pad"):
        return view.mean(axes)
    return view.sum(axes) / pooled(np.ones_like(x), attrs, 0.0)[0].sum(axes)


rule("MaxPool", max_pool)
summed("AveragePool", average_pool)
summed("GlobalAveragePool", lambda a, x: x.mean(tuple(range(2, x.ndim)), keepdims=True))
rule("GlobalMaxPool", lambda a, x: x.max(tuple(range(2, x.ndim)), keepdims=True))


def places(attrs, size, wanted):
    i = np.arange(wanted, dtype=np.float64)
    mode = attrs["coordinate_transformation_mode"]
    if mode == "asymmetric":
        return i * size / wanted
    if mode == "align_corners":
        return i * (size - 1) / (wanted - 1) if wanted > 1 else 0 * i
    if mode == "pytorch_half_pixel" and wanted <= 1:
        return 0 * i
    return (i + 0.5) * size / wanted - 0.5


CUBIC = -0.75


def cubic_weights(at):
    """Of the four samples around each place, from one before it on."""
    t = np.abs(at - np.floor(at) - np.arange(-1, 3)[:, None])
    near = (CUBIC + 2) * t**3 - (CUBIC + 3) * t**2 + 1
    return np.where(t <= 1, near, CUBIC * (t**3 - 5 * t**2 + 8 * t - 4))


def interpolation(attrs, size, wanted):
    """The matrix that takes |size| samples to |wanted|."""
    at = places(attrs, size, wanted)
    matrix = np.zeros((wanted, size))
    if attrs["mode"] == "nearest":
        rounded = {"floor": np.floor, "ceil": np.ceil, "round_prefer_floor": lambda v: np.ceil(v - 0.5),
                   "round_prefer_ceil": lambda v: np.floor(v + 0.5)}
        index = rounded[attrs["nearest_mode"]](at)
        matrix[np.arange(wanted), np.clip(index, 0, size - 1).astype(int)] = 1
        return matrix
    if attrs["mode"] == "cubic":
        for k, weights in enumerate(cubic_weights(at)):
            np.add.at(matrix, (np.arange(wanted), np.clip(np.floor(at).astype(int) + k - 1, 0, size - 1)), weights)
        return matrix
    at = np.clip(at, 0, size - 1)
    low = np.floor(at).astype(int)
    np.add.at(matrix, (np.arange(wanted), low), 1 - (at - low))
    np.add.at(matrix, (np.arange(wanted), np.minimum(low + 1, size - 1)), at - low)
    return matrix


def resize(attrs, x, roi, scales, sizes_=None):
    wanted = [int(math.floor(s * d)) for s, d in zip(scales, x.shape)] if sizes_ is None else sizes_.tolist()
    for axis in range(2, x.ndim):
        matrix = interpolation(attrs, x.shape[axis], wanted[axis])
        x = np.moveaxis(np.tensordot(matrix, x, ((1,), (axis,))), 0, axis)
    return x


def resize_terms(attrs, results, x, *rest):
    """Places are rounded too: an error in proportion to their number, times the step between neighbours."""
    return [np.full_like(r, max(x.shape[2:]) * np.abs(x).max(initial=0)) for r in results]


rule("Resize", resize, resize_terms)


# ---- Along axes ----

def axes_of(attrs, x, axes):
    chosen = attrs.get("axes") if axes is None else axes.tolist()
    return tuple(chosen) if chosen is not None else tuple(range(x.ndim))


def reduction(function):
    return lambda attrs, x, axes=None: function(x, axes_of(attrs, x, axes), bool(attrs.get("keepdims", 1)))


def log_sum_exp(x, axes, keep):
    top = x.max(axes, keepdims=True)
    y = np.log(np.exp(x - top).sum(axes, keepdims=True)) + top
    return y if keep else y.squeeze(axes)


REDUCTIONS = {
    "ReduceSum": lambda x, a, k: x.sum(a, keepdims=k).astype(x.dtype), "ReduceMean": lambda x, a, k: x.mean(a, keepdims=k),
    "ReduceL1": lambda x, a, k: np.abs(x).sum(a, keepdims=k), "ReduceSumSquare": lambda x, a, k: (x * x).sum(a, keepdims=k),
    "ReduceL2": lambda x, a, k: np.sqrt((x * x).sum(a, keepdims=k)), "ReduceLogSumExp": log_sum_exp}
for name, function in REDUCTIONS.items():
    summed(name, reduction(function))
rule("ReduceMax", reduction(lambda x, a, k: x.max(a, keepdims=k)))
rule("ReduceMin", reduction(lambda x, a, k: x.min(a, keepdims=k)))


def gap(attrs, x, best):
    """How far the best of each row is from the next."""
    axis = attrs["axis"]
    ordered = np.sort(x if best else -x, axis)
    if x.shape[axis] < 2:
        return np.full(x.shape, np.inf)
    return np.broadcast_to(np.abs(np.diff(np.take(ordered, [-2, -1], axis), axis=axis)), x.shape)


def arg(function):
    def compute(attrs, x):
        y = function(x, attrs["axis"])
        return np.expand_dims(y, attrs["axis"]) if attrs["keepdims"] else y

    return compute


rule("ArgMax", arg(np.argmax), None, lambda a, x: gap(a, x, True))
rule("ArgMin", arg(np.argmin), None, lambda a, x: gap(a, x, False))


def top_k(attrs, x, k):
    axis, count = attrs["axis"], int(k[0])
    if count > x.shape[axis]:
        raise ValueError("more are asked for than are there")
    order = np.argsort(-x if attrs["largest"] else x, axis, kind="stable")
    order = np.take(order, range(count), axis)
    return [np.take_along_axis(x, order, axis), order]


def top_k_jumps(attrs, x, k):
    axis = attrs["axis"]
    if x.shape[axis] < 2:
        return np.full(x.shape, np.inf)
    return np.broadcast_to(np.diff(np.sort(x, axis), axis=axis).min(axis, keepdims=True), x.shape)


rule("TopK", top_k, None, top_k_jumps)


def cum_sum(attrs, x, axis):
    axis = axis.item()
    x = np.flip(x, axis) if attrs.get("reverse") else x
    y = np.cumsum(x, axis, dtype=x.dtype)
    y = y - x if attrs.get("exclusive") else y
    return np.flip(y, axis) if attrs.get("reverse") else y


rule("CumSum", cum_sum, lambda a, results, x, axis: [np.broadcast_to(np.abs(x).sum(int(axis), keepdims=True), x.shape)])


def softmax(attrs, x):
    axis = attrs.get("axis", -1)
    top = x.max(axis, keepdims=True)
    y = np.exp(x - np.where(np.isinf(top), 0, top))
    return y / y.sum(axis, keepdims=True)


def softmax_terms(attrs, results, x):
    axis = attrs.get("axis", -1)
    below = x.max(axis, keepdims=True) - x
    return [(1 + np.where(np.isfinite(below), below, 0)) * (results[0] if results[0].max(initial=0) <= 1 else 1)]


def log_softmax(attrs, x):
    return x - log_sum_exp(x, (attrs.get("axis", -1),), True)


rule("Softmax", softmax, softmax_terms)
rule("LogSoftmax", log_softmax, lambda a, results, x: [np.abs(results[0]) + np.abs(x).max(initial=0)])


def normalized(x, axes, epsilon):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + epsilon)


def normalized_terms(x, axes, epsilon, scale):
    """The mean is taken off: what is left may be much smaller than what it was taken from."""
    deviation = np.sqrt(x.var(axes, keepdims=True) + epsilon)
    top = np.abs(x).max(axes, keepdims=True)
    return (top / deviation) ** 2 * np.abs(scale) + top / deviation * np.abs(scale)


def layer_norm(attrs, x, scale, bias=None):
    axes = tuple(range(attrs["axis"] % x.ndim, x.ndim))
    y = normalized(x, axes, attrs["epsilon"]) * scale
    return y if bias is None else y + bias


def layer_norm_terms(attrs, results, x, scale, bias=None):
    axes = tuple(range(attrs["axis"] % x.ndim, x.ndim))
    return [normalized_terms(x, axes, attrs["epsilon"], scale) + np.abs(results[0]) + (0 if bias is None else np.abs(bias))]


def channel(x, vector):
    return vector.reshape(-1, *[1] * (x.ndim - 2))


def instance_norm(attrs, x, scale, bias):
    return normalized(x, tuple(range(2, x.ndim)), attrs["epsilon"]) * channel(x, scale) + channel(x, bias)


def instance_norm_terms(attrs, results, x, scale, bias):
    terms = normalized_terms(x, tuple(range(2, x.ndim)), attrs["epsilon"], channel(x, scale))
    return [terms + np.abs(results[0]) + np.abs(channel(x, bias))]


def batch_norm(attrs, x, scale, bias, mean, variance):
    factor = scale / np.sqrt(variance + attrs["epsilon"])
    return (x - channel(x, mean)) * channel(x, factor) + channel(x, bias)


def batch_norm_terms(attrs, results, x, scale, bias, mean, variance):
    factor = np.abs(scale) / np.sqrt(variance + attrs["epsilon"])
    return [(np.abs(x) + np.abs(channel(x, mean))) * channel(x, factor) + np.abs(channel(x, bias))]


rule("LayerNormalization", layer_norm, layer_norm_terms)
rule("InstanceNormalization", instance_norm, instance_norm_terms)
rule("BatchNormalization", batch_norm, batch_norm_terms)


# ---- Control: the branches and the body are one op of two inputs, {"then": "Add", "else": "Mul"}, {"body": "Sub"} ----

def branch(attrs, condition, x, y):
    return RULES[attrs["then" if condition else "else"]].compute({}, x, y)


def loop(attrs, count, x, y):
    """What is left of x, and x after each turn."""
    turns = []
    for _ in range(count.item()):
        x = RULES[attrs["body"]].compute({}, x, y)
        turns.append(x)
    return [x, np.stack(turns)]


def loop_terms(attrs, results, count, x, y):
    each = np.abs(x) + np.abs(y) * count.item() + np.abs(results[1]).max(0)
    return [each, np.broadcast_to(each, results[1].shape)]


rule("If", branch, lambda a, results, condition, x, y: sizes(a, results, x, y))
rule("Loop", loop, loop_terms)


# ---- Products of integers ----

def matmul_integer(attrs, x, y, x_zero, y_zero=0):
    return (x.astype(np.int32) - x_zero) @ (y.astype(np.int32) - y_zero)


def conv_integer(attrs, x, w, x_zero, w_zero):
    y = conv(attrs, x.astype(np.float64) - x_zero, w.astype(np.float64) - w_zero)
    return np.rint(y).astype(np.int32)


rule("MatMulInteger", matmul_integer)
rule("ConvInteger", conv_integer)
