"""Rules, as in net_reference.py, for ops that are seldom in a network, or are many others in one: recurrent layers,
attention, further norms, quantised products, 8-bit floats, further windows and movements, and ONNX Runtime's own."""

import math

import ml_dtypes
import numpy as np

from net_reference import (LIMITS, RULES, between, channel, conv, erf, gap, normalized, normalized_terms, pooled, positive,
                           reduction, rule, sigmoid, sizes, summed)

# ---- Elementwise ----

SELU = float(np.float32(1.05070102214813232421875)), float(np.float32(1.67326319217681884765625))  # as ONNX has them
UNARY = {
    "Sinh": np.sinh, "Cosh": np.cosh, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Asinh": np.arcsinh,
    "Acosh": np.arccosh, "Atanh": np.arctanh, "Selu": lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(np.minimum(x, 0)))}
for name, function in UNARY.items():
    rule(name, lambda attrs, x, f=function: f(x), sizes)
rule("Celu", lambda a, x: np.maximum(x, 0) + np.minimum(0, a["alpha"] * np.expm1(np.minimum(x, 0) / a["alpha"])), sizes)
rule("Swish", lambda a, x: x * sigmoid(a.get("alpha", 1.0) * x), sizes)
rule("ThresholdedRelu", lambda a, x: np.where(x > a["alpha"], x, 0), None, lambda a, x: between(x, a["alpha"]))
rule("Shrink", lambda a, x: np.where(x < -a["lambd"], x + a["bias"], np.where(x > a["lambd"], x - a["bias"], 0)), sizes,
     lambda a, x: between(np.abs(x), a["lambd"]))
rule("IsNaN", lambda a, x: np.isnan(x))
rule("IsInf", lambda a, x: np.isinf(x))
for name, function in {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}.items():
    rule(name, lambda attrs, x, y, f=function: f(x, y))


# ---- Along axes ----

def product_terms(attrs, results, x, axes=None):
    """Each factor is rounded once."""
    count = x.size / max(1, results[0].size)
    return [np.abs(results[0]) * max(1, count)]


rule("ReduceProd", reduction(lambda x, a, k: x.prod(a, keepdims=k)), product_terms)
summed("ReduceLogSum", reduction(lambda x, a, k: np.log(x.sum(a, keepdims=k))))


def hardmax(attrs, x):
    axis = attrs["axis"]
    places = np.expand_dims(np.arange(x.shape[axis]), [i for i in range(x.ndim) if i != axis % x.ndim])
    return (np.argmax(x, axis, keepdims=True) == places) * 1.0


rule("Hardmax", hardmax, None, lambda a, x: gap(a, x, True))


def grouped(attrs, x):
    return x.reshape(x.shape[0], attrs["num_groups"], -1)


def of_groups(attrs, x, vector):
    """|vector| for each channel; it has one element for each group before opset 21."""
    return channel(x, vector if vector.size == x.shape[1] else vector.repeat(x.shape[1] // attrs["num_groups"]))


def group_norm(attrs, x, scale, bias):
    y = normalized(grouped(attrs, x), (2,), attrs["epsilon"]).reshape(x.shape)
    return y * of_groups(attrs, x, scale) + of_groups(attrs, x, bias)


def group_norm_terms(attrs, results, x, scale, bias):
    each = normalized_terms(grouped(attrs, x), (2,), attrs["epsilon"], 1.0)
    each = np.broadcast_to(each, grouped(attrs, x).shape).reshape(x.shape) * np.abs(of_groups(attrs, x, scale))
    return [each + np.abs(results[0]) + np.abs(of_groups(attrs, x, bias))]


def rms_norm(attrs, x, scale):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + attrs["epsilon"]) * scale


def mean_variance_norm(attrs, x):
    if (x.var(tuple(attrs["axes"])) < 1e-3).any():
        raise ValueError("nothing but what was rounded would be left")
    return normalized(x, tuple(attrs["axes"]), 1e-9)


def lp_norm(attrs, x):
    """Nothing is divided by nothing: zeros stay."""
    length = np.linalg.norm(x, attrs["p"], attrs["axis"], keepdims=True)
    return x / np.where(length == 0, 1, length)


def lrn(attrs, x):
    n = attrs["size"]
    square = np.pad(x * x, [((n - 1) // 2, n // 2) if i == 1 else (0, 0) for i in range(x.ndim)])
    total = sum(square[:, i:i + x.shape[1]] for i in range(n))
    return x / (attrs["bias"] + attrs["alpha"] / n * total) ** attrs["beta"]


rule("GroupNormalization", group_norm, group_norm_terms)
rule("RMSNormalization", rms_norm, lambda a, r, x, scale: [2 * np.abs(r[0])])
rule("MeanVarianceNormalization", mean_variance_norm,
     lambda a, r, x: [normalized_terms(x, tuple(a["axes"]), 1e-9, 1.0) + np.abs(r[0])])
rule("LpNormalization", lp_norm, sizes)
rule("LRN", lrn, sizes)


# ---- Attention ----

def as_heads(x, count):
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)


def attention_parts(attrs, q, k, v, mask):
    """Scores, the same without signs, and values: a head of keys may serve several of queries."""
    q, k, v = as_heads(q, attrs.get("q_num_heads")), as_heads(k, attrs.get("kv_num_heads")), as_heads(v, attrs.get("kv_num_heads"))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    factor = attrs.get("scale", q.shape[-1] ** -0.5)
    scores = q @ k.swapaxes(-1, -2) * factor
    size = np.abs(q) @ np.abs(k).swapaxes(-1, -2) * factor
    if attrs.get("is_causal"):
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    return scores, size, v


def attention(attrs, q, k, v, mask=None):
    scores, _, values = attention_parts(attrs, q, k, v, mask)
    y = np.exp(scores - scores.max(-1, keepdims=True))
    y = y / y.sum(-1, keepdims=True) @ values
    return y if q.ndim == 4 else y.swapaxes(1, 2).reshape(*q.shape[:2], -1)


def attention_terms(attrs, results, q, k, v, mask=None):
    scores, size, values = attention_parts(attrs, q, k, v, mask)
    y = (2 + size.max(-1, keepdims=True)) * np.abs(values).max(-2, keepdims=True)
    return [y if q.ndim == 4 else y.swapaxes(1, 2).reshape(*q.shape[:2], -1)]


rule("Attention", attention, attention_terms)


def with_heads(function):
    """Of MultiHeadAttention, whose inputs have as many heads each and a bias for the three of them."""
    def call(attrs, *arguments):
        *results, q, k, v, bias = arguments
        attrs = {**attrs, "q_num_heads": attrs["num_heads"], "kv_num_heads": attrs["num_heads"]}
        ends = np.cumsum([x.shape[-1] for x in (q, k, v)])
        parts = [0, 0, 0] if bias is None else np.split(bias, ends[:2])
        return function(attrs, *results, *(x + part for x, part in zip((q, k, v), parts)))

    return call


def rotary(attrs, x, cos, sin, positions=None):
    wide = as_heads(x, attrs.get("num_heads"))
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos[:, None], sin[:, None]
    half = wide.shape[-1] // 2
    a, b = (wide[..., 0::2], wide[..., 1::2]) if attrs.get("interleaved") else (wide[..., :half], wide[..., half:])
    y = [a * cos - b * sin, b * cos + a * sin]
    y = np.stack(y, -1).reshape(wide.shape) if attrs.get("interleaved") else np.concatenate(y, -1)
    return y if x.ndim == 4 else y.swapaxes(1, 2).reshape(x.shape)


def rotary_terms(attrs, results, x, *rest):
    return [np.broadcast_to(2 * np.abs(x).max(-1, keepdims=True), x.shape)]


rule("RotaryEmbedding", rotary, rotary_terms)


# ---- Recurrent layers ----

def lstm_step(x, h, c, r, bias, attrs):
    i, o, f, g = np.split(x + h @ r.T + bias, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, h, c, r, bias, attrs):
    """|bias| is that of h: of the third gate it may be inside of what is reset."""
    n = h.shape[-1]
    gates = h @ r[:2 * n].T + bias[:2 * n]
    z, reset = sigmoid(x[..., :n] + gates[..., :n]), sigmoid(x[..., n:2 * n] + gates[..., n:])
    if attrs.get("linear_before_reset"):
        y = np.tanh(x[..., 2 * n:] + reset * (h @ r[2 * n:].T + bias[2 * n:]))
    else:
        y = np.tanh(x[..., 2 * n:] + (reset * h) @ r[2 * n:].T + bias[2 * n:])
    return (1 - z) * y + z * h, c


def rnn_step(x, h, c, r, bias, attrs):
    return np.tanh(x + h @ r.T + bias), c


def recurrent(step):
    def compute(attrs, x, w, r, bias=None, lengths=None, h0=None, c0=None):
        count, width = w.shape[0], r.shape[-1]
        bias = np.zeros((count, 2 * w.shape[1])) if bias is None else bias
        states = [np.zeros((count, x.shape[1], width)) if s is None else s for s in (h0, c0)]
        y = np.zeros((x.shape[0], count, x.shape[1], width))
        last = []
        for d in range(count):
            h, c = states[0][d], states[1][d]
            backwards = d == 1 or attrs.get("direction") == "reverse"
            for t in range(x.shape[0])[::-1 if backwards else 1]:
                given, own = np.split(bias[d], 2)
                h, c = step(x[t] @ w[d].T + given, h, c, r[d], own, attrs)
                y[t, d] = h
            last.append((h, c))
        return [y, np.stack([h for h, _ in last]), np.stack([c for _, c in last])]

    return compute


def recurrent_terms(attrs, results, x, w, r, bias=None, lengths=None, h0=None, c0=None):
    """A step's error goes into all that follow."""
    def top(array, least=0):
        return least if array is None else np.abs(array).max(initial=least)

    gates = top(x) * np.abs(w).sum(-1).max() + top(h0, 1) * np.abs(r).sum(-1).max() + 2 * top(bias)
    return [np.full(y.shape, x.shape[0] * (1 + gates + top(c0))) for y in results]


rule("LSTM", recurrent(lstm_step), recurrent_terms)
for name, step in {"GRU": gru_step, "RNN": rnn_step}.items():
    rule(name, lambda a, *x, f=recurrent(step): f(a, *x)[:2], recurrent_terms)


# ---- Quantised products and 8-bit floats ----

def requantized(y, scale, zero):
    low, high = LIMITS[zero.dtype]
    return np.clip(np.rint(y / scale) + zero, low, high).astype(zero.dtype)


def qlinear_matmul(attrs, a, a_scale, a_zero, b, b_scale, b_zero, scale, zero):
    y = (a.astype(np.float64) - a_zero) * a_scale @ ((b.astype(np.float64) - b_zero) * b_scale)
    return requantized(y, scale, zero)


def qlinear_conv(attrs, x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, bias=None):
    shape = (-1, 1, 1, 1)
    y = conv(attrs, (x.astype(np.float64) - x_zero) * x_scale, (w.astype(np.float64) - w_zero.reshape(shape)) * w_scale.reshape(shape))
    if bias is not None:
        y = y + (bias * x_scale * w_scale).reshape(-1, 1, 1)
    return requantized(y, scale, zero)


def dynamic_quantize(attrs, x):
    low, high = min(0.0, x.min()), max(0.0, x.max())
    scale = np.float64((high - low) / 255)
    zero = np.uint8(np.clip(np.rint(-low / scale), 0, 255))
    return [np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), scale, np.asarray(zero)]


def dynamic_jumps(attrs, x):
    low, high = min(0.0, x.min()), max(0.0, x.max())
    at = -low / ((high - low) / 255)
    return np.asarray((np.abs(at - np.floor(at) - 0.5) if low < 0 else 1.0) * (high - low) / 1024)


rule("QLinearMatMul", qlinear_matmul, rounds=6)
rule("QLinearConv", qlinear_conv, rounds=6)
rule("DynamicQuantizeLinear", dynamic_quantize, lambda a, r, x: [r[0], np.abs(r[1]) * 2, r[2]], dynamic_jumps, rounds=0)

FLOAT8 = {17: ml_dtypes.float8_e4m3fn, 18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e5m2fnuz}
LARGEST8 = {number: float(ml_dtypes.finfo(dtype).max) for number, dtype in FLOAT8.items()}


def to_float8(attrs, x):
    """Casts saturate unless they are told not to."""
    return np.clip(x, -LARGEST8[attrs["to"]], LARGEST8[attrs["to"]]).astype(FLOAT8[attrs["to"]])


rule("ToFloat8", to_float8, rounds=0)  # a Cast
rule("FromFloat8", lambda a, x: x.astype(np.float64))


# ---- Moving data ----

JOINED = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scatter_elements(attrs, x, indices, updates):
    y, axis = x.copy(), attrs["axis"]
    at = list(np.indices(indices.shape))
    at[axis] = np.where(indices < 0, indices + x.shape[axis], indices)
    if any(n > x.shape[i] for i, n in enumerate(indices.shape) if i != axis):
        raise ValueError("indices reach beyond the data")
    function = JOINED[attrs.get("reduction", "none")]
    if function:
        function.at(y, tuple(at), updates)
    else:
        y[tuple(at)] = updates
    return y


def scatter_terms(attrs, results, x, indices, updates):
    return [scatter_elements({**attrs, "reduction": "add"}, np.abs(x), indices, np.abs(updates)) + np.abs(results[0])]


def one_hot(attrs, indices, depth, values):
    count = int(depth.reshape(-1)[0])
    hot = np.expand_dims(np.where(indices < 0, indices + count, indices), -1) == np.arange(count)
    return np.moveaxis(np.where(hot, values[1], values[0]), -1, attrs["axis"])


def reverse_sequence(attrs, x, lengths):
    y = x.copy()
    for i, n in enumerate(lengths.tolist()):
        if n > x.shape[attrs["time_axis"]]:
            raise ValueError("longer than the data")
        at = (slice(n), i) if attrs["time_axis"] == 0 else (i, slice(n))
        y[at] = np.flip(x[at], 0)
    return y


def eye(attrs, x):
    return np.eye(*x.shape, attrs["k"])


def compress(attrs, x, condition):
    if condition.size > x.shape[attrs["axis"]]:
        raise ValueError("more conditions than data")
    return np.compress(condition, x, attrs["axis"])


def center_crop_pad(attrs, x, shape):
    for axis, wanted in zip(attrs["axes"], shape.tolist()):
        n = x.shape[axis]
        if wanted <= n:
            x = np.take(x, range((n - wanted) // 2, (n - wanted) // 2 + wanted), axis)
        else:
            x = np.pad(x, [((wanted - n) // 2, wanted - n - (wanted - n) // 2) if i == axis else (0, 0) for i in range(x.ndim)])
    return x


rule("ScatterElements", scatter_elements, scatter_terms)
rule("OneHot", one_hot)
rule("ReverseSequence", reverse_sequence)
rule("EyeLike", eye)
rule("Compress", compress)
rule("CenterCropPad", center_crop_pad)
rule("NonZero", lambda a, x: np.array(np.nonzero(x), np.int64))
rule("ConstantOfShape", lambda a, shape: np.full(shape.tolist(), a["value"]))
rule("Range", lambda a, start, end, step: np.arange(start, end, step))


def parts_joined(attrs, x, size, zero):
    """|size| entries of an axis in each part."""
    size = int(size)
    parts = np.split(x, range(size, x.shape[attrs["axis"]], size), attrs["axis"])
    return np.concatenate(parts[1:] + parts[:1] if attrs["turned"] else parts, attrs["to"])


rule("PartsJoined", parts_joined)  # of a sequence
rule("Unique", lambda a, x: [r.reshape(-1) for r in np.unique(x, True, True, True)])


# ---- Signals and places ----

def dft(attrs, x, length=None, axis=None):
    axis = attrs.get("axis", 1) if axis is None else int(axis)
    y = (np.fft.ifft if attrs.get("inverse") else np.fft.fft)(x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0), axis=axis)
    y = np.take(y, range(x.shape[axis] // 2 + 1), axis) if attrs.get("onesided") else y
    return np.stack([y.real, y.imag], -1)


def dft_terms(attrs, results, x, length=None, axis=None):
    """The angles are rounded, too."""
    axis = attrs.get("axis", 1) if axis is None else int(axis)
    size = 8 * np.abs(x).sum(axis, keepdims=True).max(-1, keepdims=True) / (x.shape[axis] if attrs.get("inverse") else 1)
    return [np.broadcast_to(size, results[0].shape)]


def affine_grid(attrs, theta, size):
    _, _, h, w = size.tolist()
    rows, columns = (np.linspace(-1, 1, n) if attrs["align_corners"] else (2 * np.arange(n) + 1) / n - 1 for n in (h, w))
    places = np.stack([*np.meshgrid(columns, rows), np.ones((h, w))], -1)
    return np.einsum("hwk,nik->nhwi", places, theta)


def grid_sample(attrs, x, grid):
    """Between four neighbours."""
    def taken(images, row, column):
        inside = (row >= 0) & (row < images.shape[1]) & (column >= 0) & (column < images.shape[2])
        return images[:, row.clip(0, images.shape[1] - 1), column.clip(0, images.shape[2] - 1)] * inside

    results = []
    for images, places in zip(x, grid):
        sizes = np.array(images.shape[:0:-1])
        at = (places + 1) / 2 * (sizes - 1) if attrs["align_corners"] else ((places + 1) * sizes - 1) / 2
        at = at.clip(0, sizes - 1) if attrs["padding_mode"] == "border" else at
        low = np.floor(at).astype(int)
        (right, down), (column, row) = np.moveaxis(at - low, -1, 0), np.moveaxis(low, -1, 0)
        results.append(taken(images, row, column) * (1 - right) * (1 - down) + taken(images, row, column + 1) * right * (1 - down) +
                       taken(images, row + 1, column) * (1 - right) * down + taken(images, row + 1, column + 1) * right * down)
    return np.stack(results)


def grid_terms(attrs, results, x, grid):
    """Places are rounded, too."""
    return [np.full_like(r, 4 * max(x.shape[2:]) * np.abs(x).max(initial=0) * np.abs(grid).max(initial=1)) for r in results]


rule("DFT", dft, dft_terms)
rule("AffineGrid", affine_grid, lambda a, r, theta, size: [np.full_like(r[0], 3 * np.abs(theta).max(initial=0))])
rule("GridSample", grid_sample, grid_terms)


# ---- Windows ----

def lp_pool(attrs, x):
    view, axes = pooled(np.abs(x), attrs, 0.0)
    return (view ** attrs["p"]).sum(axes) ** (1 / attrs["p"])


def col2im(attrs, x, image, block):
    (h, w), (kh, kw) = image.tolist(), block.tolist()
    y = np.zeros((x.shape[0], x.shape[1] // (kh * kw), h, w))
    rows, columns = h - kh + 1, w - kw + 1
    parts = x.reshape(x.shape[0], -1, kh, kw, rows, columns)
    for i in range(kh):
        for j in range(kw):
            y[:, :, i:i + rows, j:j + columns] += parts[:, :, i, j]
    return y


rule("LpPool", lp_pool, lambda a, r, x: [4 * np.abs(r[0])])
summed("Col2Im", col2im)


# ---- ONNX Runtime's own: the operands' domain is in their names ----

def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def fast_gelu(attrs, x, bias=None):
    x = x if bias is None else x + bias
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def fused_matmul(attrs, a, b):
    a = a.swapaxes(-1, -2) if attrs.get("transA") else a
    return attrs.get("alpha", 1.0) * (a @ (b.swapaxes(-1, -2) if attrs.get("transB") else b))


def skip_norm(attrs, x, skip, scale, shift=None, bias=None):
    y = x + skip if bias is None else x + skip + bias
    y = normalized(y, (-1,), attrs["epsilon"]) * scale
    return y if shift is None else y + shift


def skip_norm_terms(attrs, results, x, skip, scale, shift=None, bias=None):
    y = x + skip if bias is None else x + skip + bias
    top = np.abs(x) + np.abs(skip) + (0 if bias is None else np.abs(bias))
    more = top.max(-1, keepdims=True) / np.sqrt(y.var(-1, keepdims=True) + attrs["epsilon"]) * np.abs(scale)
    return [normalized_terms(y, (-1,), attrs["epsilon"], scale) + more + np.abs(results[0]) + (0 if shift is None else np.abs(shift))]


OWN = "com.microsoft."
rule(OWN + "Gelu", lambda a, x: gelu(x), sizes)
rule(OWN + "BiasGelu", lambda a, x, bias: gelu(x + bias), sizes)
rule(OWN + "FastGelu", fast_gelu, sizes)
rule(OWN + "QuickGelu", lambda a, x: x * sigmoid(a["alpha"] * x), sizes)
summed(OWN + "FusedMatMul", fused_matmul)
rule(OWN + "FusedConv", lambda a, *x: np.maximum(conv(a, *x), 0), positive(conv))
rule(OWN + "MultiHeadAttention", with_heads(attention), with_heads(attention_terms))
rule(OWN + "SkipLayerNormalization", skip_norm, skip_norm_terms)


# ---- Control ----

def scan(attrs, x, rows):
    turns = []
    for row in rows:
        x = RULES[attrs["body"]].compute({}, x, row)
        turns.append(x)
    return [x, np.stack(turns) if turns else np.zeros((0, *x.shape))]


def scan_terms(attrs, results, x, rows):
    each = np.abs(x) + np.abs(rows).sum(0)
    return [each, np.broadcast_to(each, results[1].shape)]


rule("Scan", scan, scan_terms)
