"""Draws, as in net_draw.py, of the ops of net_reference_wide.py; in float32 and float64, where another machine than
O3's, ONNX Runtime, has been held to the same bounds."""

import functools

import numpy as np

import net_draw
from net_draw import affordable, image, mask, maybe_activated, reduce_on, window
from net_graph import OWN_DOMAIN, Unfit
from net_reference_wide import FLOAT8


def draw(**weights):
    def add(function):
        @functools.wraps(function)
        def checked(d):
            if d.net.rounded not in ("f32", "f64"):
                raise Unfit("in float32 and float64 alone")
            function(d)

        return net_draw.draw(**weights)(checked)

    return add


def least(d, opset):
    if d.net.opset < opset:
        raise Unfit("opset")


def own(op):
    return f"{OWN_DOMAIN}.{op}"


# ---- Elementwise ----

FLAT = {"Asin": 0.9, "Acos": 0.9, "Atanh": 0.9, "Tan": 1.25}  # of what is between -1 and 1


@draw(image=1, rows=1, mixed=2, small=3)
def seldom(d):
    x, r = d.pick(), d.random
    op = r.choice([*FLAT, "Sinh", "Cosh", "Asinh", "Acosh", "Selu", "Celu", "Swish", "ThresholdedRelu", "Shrink", "Hardmax"])
    attrs = {"Celu": {"alpha": 0.75}, "ThresholdedRelu": {"alpha": 0.25}, "Shrink": {"lambd": 0.25, "bias": 0.5}}.get(op, {})
    if op == "Swish":
        least(d, 24)
        attrs = {"alpha": r.choice([1.0, 0.5, -1.5])}
    if op in FLAT:
        x = d.emit("Mul", [d.emit("Tanh", [x]), d.floats(FLAT[op])])
    elif op == "Acosh":
        x = d.emit("Add", [d.emit("Abs", [x]), d.floats(1.5)])
    elif op in ("Sinh", "Cosh"):
        x = d.emit("Clip", [x, d.floats(-3.0), d.floats(3.0)])
    elif op == "Hardmax":
        rank = len(d.shape(x))
        if not rank:
            raise Unfit("no axis")
        attrs = {"axis": r.randint(-rank, rank - 1)}
    d.keep(d.emit(op, [x], **attrs))


@draw(rows=1, image=1, small=1)
def classes(d):
    """What is not a number, or too large for one."""
    x, r = d.pick(), d.random
    y = d.emit(r.choice(["IsNaN", "IsInf"]), [d.emit("Div", [x, d.emit("Relu", [x])])])
    d.keep(d.emit("Where", [y, x, d.floats(0.25)]))


@draw(rows=1, image=1)
def runtimes_own(d):
    """Ops of ONNX Runtime's optimiser."""
    x, r = d.pick(range(2, 5), where=lambda v: d.size(v, -1)), d.random
    n = d.size(x, -1)
    op = r.choice(["Gelu", "QuickGelu", "BiasGelu", "FastGelu", "FusedMatMul", "SkipLayerNormalization", "FusedConv"])
    inputs, attrs = [x], {}
    if op == "FusedConv":
        x = d.pick(4, where=lambda v: d.size(v, 1))
        c, out, attrs = d.size(x, 1), r.choice(d.channels), window(d, 2, [3, 1, 5], [1, 2])
        affordable(out, c, np.prod(attrs["kernel_shape"]), np.prod(d.shape(x)[2:]), d.shape(x)[0])
        inputs = [x, d.weight((out, c, *attrs["kernel_shape"]), c * 9), d.normal((out,))]
        attrs["activation"] = "Relu"
    elif op == "FusedMatMul":
        out, transposed = r.choice(d.lengths), r.randint(0, 1)
        affordable(n, out, np.prod(d.shape(x)[:-1]))
        inputs.append(d.weight((out, n) if transposed else (n, out), n))
        attrs = {"alpha": r.choice([1.0, 0.5]), "transB": transposed}
    elif op == "SkipLayerNormalization":
        inputs += [d.emit("Relu", [x]) if r.random() < 0.5 else x, d.normal((n,)), d.normal((n,))]
        inputs += [d.normal((n,))] if r.random() < 0.5 else []
        attrs = {"epsilon": 1e-2}
        if len(d.shape(x)) != 3:
            raise Unfit("of rank 3")
    elif op != "Gelu":
        attrs = {"alpha": 1.702} if op == "QuickGelu" else {}
        inputs += [d.normal((n,))] if op == "BiasGelu" or (op == "FastGelu" and r.random() < 0.7) else []
    d.keep(d.emit(own(op), inputs, **attrs))


# ---- Norms and sums ----

@draw(image=3, mixed=1)
def norm_of_channels(d):
    x, r = image(d), d.random
    c = d.size(x, 1)
    op = r.choice(["GroupNormalization", "GroupNormalization", "LRN", "MeanVarianceNormalization"])
    if op == "LRN":
        d.keep(d.emit("LRN", [x], size=r.choice([1, 3, 5]), alpha=0.125, beta=0.75, bias=1.0))
    elif op == "GroupNormalization":
        least(d, 18)
        groups = r.choice([g for g in (1, 2, 3, 4, 8) if c % g == 0])
        size = c if d.net.opset >= 21 else groups
        d.keep(d.emit("GroupNormalization", [x, d.normal((size,)), d.normal((size,))], num_groups=groups, epsilon=1e-2))
    elif len(d.shape(x)) == 4 and min(d.shape(x)[2:]) > 1:  # of one element nothing is left but what was rounded
        d.keep(d.emit("MeanVarianceNormalization", [x], axes=r.choice([[0, 2, 3], [2, 3], [1, 2, 3]])))
    else:
        raise Unfit("of rank 4, with an image")


@draw(rows=2)
def norm_of_rows(d):
    x, r = d.pick(range(1, 6), where=lambda v: d.size(v, -1)), d.random
    if r.random() < 0.6:
        least(d, 23)
        d.keep(d.emit("RMSNormalization", [x, d.normal((d.size(x, -1),))], axis=-1, epsilon=1e-2))
    else:
        d.keep(d.emit("LpNormalization", [x], axis=r.choice([-1, 0]), p=r.choice([1, 2])))


@draw(rows=1, small=1)
def seldom_sums(d):
    x, r = d.pick(range(1, 6)), d.random
    rank = len(d.shape(x))
    axes, op = r.sample(range(rank), r.randint(1, rank)), r.choice(["ReduceProd", "ReduceLogSum"])
    y = d.emit("Add", [d.emit("Mul", [d.emit("Tanh", [x]), d.floats(0.125)]), d.floats(1.0)])
    d.keep(reduce_on(d, op, y, axes, r.randint(0, 1)))


# ---- Attention and recurrent layers ----

@draw(rows=3)
def attention_op(d):
    least(d, 23)
    x, r = d.pick(range(3, 5), where=lambda v: d.size(v, -1) and d.size(v, 0) and d.size(v, 1)), d.random
    lead, length, own_length = d.size(x, 0), d.symbol(r.choice([1, 2, 5, 16, 33, 65, 130]), 0.3), d.size(x, -2)
    first = length[1][0] if isinstance(length, tuple) else length
    n = d.size(x, -1)
    attrs = {"is_causal": int(r.random() < 0.3)} | ({"scale": 0.25} if r.random() < 0.3 else {})
    if len(d.shape(x)) == 4:
        count = d.size(x, 1)
        groups = r.choice([g for g in (1, 1, 2, 3, count) if count % g == 0])
        k, v = d.input([lead, count // groups, length, n]), d.input([lead, count // groups, length, r.choice([8, 16, n])])
    else:
        count = r.choice([h for h in (1, 2, 3, 4, 8) if n % h == 0])
        groups = r.choice([g for g in (1, 1, 2, count) if count % g == 0])
        k, v = (d.input([lead, length, n // groups]) for _ in range(2))
        attrs |= {"q_num_heads": count, "kv_num_heads": count // groups}
    affordable(np.prod(d.shape(x)), first, 2)
    inputs = [x, k, v]
    if r.random() < 0.4 and own_length and not isinstance(length, tuple) and not attrs["is_causal"]:
        shape = r.choice([(own_length, first), (lead, count, own_length, first), (1, 1, own_length, first)])
        inputs.append(mask(d, shape) if r.random() < 0.5 else d.constant(visible(d, shape)))
    d.keep(d.emit("Attention", inputs, **attrs))


@draw(rows=2)
def multi_head_attention(d):
    x, r = d.pick(3, where=lambda v: d.size(v, 2) and d.size(v, 1)), d.random
    width, length = d.size(x, 2), d.symbol(r.choice([1, 2, 5, 16, 33, 65]), 0.3)
    if not d.shape(x)[0] or (isinstance(length, tuple) and 0 in length[1]):
        raise Unfit("nothing to see")
    batch = d.size(x, 0)
    if batch is None:
        raise Unfit("unknown sizes")
    count = r.choice([h for h in (1, 2, 3, 4, 8) if width % h == 0])
    affordable(np.prod(d.shape(x)), length[1][0] if isinstance(length, tuple) else length, 2)
    k, v = (d.input([batch, length, width]) for _ in range(2))
    attrs = {"num_heads": count} | ({"scale": 0.25} if r.random() < 0.3 else {})
    bias = d.normal((3 * width,)) if r.random() < 0.5 else ""
    d.keep(d.emit(own("MultiHeadAttention"), [x, k, v, bias], **attrs))


def visible(d, shape):
    """A mask of which no row is empty."""
    seen = d.numbers.random(shape) < 0.7
    seen[..., 0] = True
    return seen


@draw(rows=2)
def rotary(d):
    least(d, 23)
    x, r = d.pick(range(3, 5), where=lambda v: d.known(v) and 0 not in d.shape(v)), d.random
    attrs = {"interleaved": r.randint(0, 1)}
    if len(d.shape(x)) == 4:
        batch, _, length, width = d.shape(x)
    else:
        batch, length, n = d.shape(x)
        attrs["num_heads"] = r.choice([h for h in (1, 2, 3, 4) if n % h == 0])
        width = n // attrs["num_heads"]
    if width % 2:
        raise Unfit("pairs")
    angles = d.numbers.uniform(-3, 3, (length + 3, width // 2))
    if r.random() < 0.5:
        positions = d.constant(d.numbers.integers(0, length + 3, (batch, length)))
        inputs = [x, d.floats(np.cos(angles)), d.floats(np.sin(angles)), positions]
    else:
        angles = np.broadcast_to(angles[:length], (batch, length, width // 2))
        inputs = [x, d.floats(np.cos(angles)), d.floats(np.sin(angles))]
    d.keep(d.emit("RotaryEmbedding", inputs, **attrs))


@draw(rows=3, small=1)
def recurrent(d):
    x, r = d.pick(3, where=lambda v: d.size(v, 2) and d.size(v, 1) is not None), d.random
    width, batch = d.size(x, 2), d.size(x, 1)
    op, gates = r.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    direction = r.choice(["forward", "forward", "reverse", "bidirectional"])
    count, hidden = 2 if direction == "bidirectional" else 1, r.choice([1, 3, 6, 8, 16, 24])
    affordable(count, gates, hidden, width + hidden, np.prod(d.shape(x)[:2]))
    if d.shape(x)[0] > 40 or 0 in d.shape(x):
        raise Unfit("too many steps, or none")
    inputs = [x, d.weight((count, gates * hidden, width), width), d.weight((count, gates * hidden, hidden), hidden)]
    inputs.append(d.normal((count, 2 * gates * hidden)) if r.random() < 0.7 else "")
    if r.random() < 0.4:
        inputs += ["", *(d.normal((count, batch, hidden)) for _ in range(2 if op == "LSTM" else 1))]
    attrs = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attrs["linear_before_reset"] = r.randint(0, 1)
    y, *last = d.emit(op, inputs, 3 if op == "LSTM" else 2, **attrs)
    if count == 1:
        d.keep(d.emit("Squeeze", [y, d.ints(1)]))
    else:
        d.keep(d.emit("Reshape", [d.emit("Transpose", [y], perm=[0, 2, 1, 3]), d.ints(0, 0, 2 * hidden)]))
    d.keep(*r.sample(last, r.randint(0, len(last))))


# ---- Quantised ----

def bytes_of(d, shape, low=-127):
    return d.constant(d.numbers.integers(low, 128, shape).astype(np.int8))


@draw(rows=1, image=1)
def quantized_product(d):
    """As quantisers write it, with bytes on both sides; or a product of what is measured as it comes."""
    x, r = d.pick(range(2, 5), where=lambda v: d.size(v, -1)), d.random
    if d.net.kind != "f32":
        raise Unfit("float32 alone")
    n, out = d.size(x, -1), r.choice([1, 7, 16, 33])
    affordable(n, out, np.prod(d.shape(x)[:-1]))
    if r.random() < 0.4:
        y, scale, zero = d.emit("DynamicQuantizeLinear", [x], 3)
        y = d.emit("Cast", [d.emit("MatMulInteger", [y, bytes_of(d, (n, out)), zero])], to=1)
        d.keep(d.emit("Mul", [y, d.emit("Mul", [scale, d.floats(0.01)])]))
        return
    given = d.floats(0.02), d.constant(np.uint8(r.choice([0, 100])))
    result = d.floats(r.choice([0.05, 0.3])), d.constant(np.uint8(r.choice([0, 120])))
    y = d.emit("QuantizeLinear", [x, *given])
    if len(d.shape(x)) == 4 and d.size(x, 1):
        c = d.size(x, 1)
        attrs = window(d, 2, [3, 1], [1, 2])
        affordable(out, c, 9, np.prod(d.shape(x)[2:]), d.shape(x)[0])
        weight = bytes_of(d, (out, c, *attrs["kernel_shape"])), d.floats(d.numbers.uniform(0.001, 0.01, out)), d.constant(np.zeros(out, np.int8))
        bias = [d.constant(d.numbers.integers(-1000, 1000, out).astype(np.int32))] if r.random() < 0.6 else []
        y = d.emit("QLinearConv", [y, *given, *weight, *result, *bias], **attrs)
    else:
        y = d.emit("QLinearMatMul", [y, *given, bytes_of(d, (n, out)), d.floats(0.01), d.constant(np.int8(r.choice([0, 3]))), *result])
    d.keep(d.emit("DequantizeLinear", [y, *result]))


@draw(rows=1, image=1, small=1)
def float8(d):
    """There and back, with something moved in between."""
    least(d, 19)
    x, r = d.pick(), d.random
    y = d.emit("ToFloat8", [x], to=r.choice([*FLOAT8]))
    if r.random() < 0.5 and len(d.shape(x)) > 1:
        y = d.emit("Transpose", [y], perm=r.sample(range(len(d.shape(x))), len(d.shape(x))))
    d.keep(d.emit("FromFloat8", [y]))


# ---- Moving data ----

@draw(rows=2, image=1, small=2)
def scatter_elements(d):
    x, r = d.pick(range(1, 5), where=lambda v: d.known(v) and 0 not in d.shape(v)), d.random
    shape = list(d.shape(x))
    axis = r.randrange(len(shape))
    wanted = [r.randint(1, n) for n in shape]
    join = r.choice(["none", "add", "mul", "max", "min"])
    if join != "none":
        least(d, 18)
        indices = d.numbers.integers(-shape[axis], shape[axis], wanted)
    else:
        indices = d.numbers.random([*wanted[:axis], shape[axis], *wanted[axis + 1:]]).argsort(axis).take(range(wanted[axis]), axis)
    attrs = {"axis": axis} | ({"reduction": join} if d.net.opset >= 18 else {})
    d.keep(d.emit("ScatterElements", [x, d.constant(indices), d.input(wanted)], **attrs))


@draw(rows=1, small=1)
def one_hot(d):
    r = d.random
    ids = d.input([d.symbol(r.choice([1, 3, 8]), 0.3) for _ in range(r.randint(1, 2))], "i64",
                  lambda shape: d.numbers.integers(-5, 7, shape))
    count, rank = d.constant(np.int64(r.choice([5, 7, 16]))), len(d.shape(ids))
    d.keep(d.emit("OneHot", [ids, count, d.floats([0.25, 1.5])], axis=r.choice([-1, r.randint(0, rank)])))


@draw(rows=2, small=2)
def counted(d):
    """Numbers along a dimension, which are added to it; or a whole of which only the shape is known."""
    x, r = d.pick(range(1, 5)), d.random
    if r.random() < 0.5:
        y = d.emit("ConstantOfShape", [d.emit("Shape", [x])], value=r.choice([0.0, 1.5]))
        d.keep(d.emit("Add", [x, y]))
        return
    n = d.emit("Squeeze", [d.emit("Slice", [d.emit("Shape", [x]), d.ints(-1), d.ints(2**31), d.ints(0), d.ints(1)]), d.ints(0)])
    line = d.emit("Cast", [d.emit("Range", [d.constant(np.int64(0)), n, d.constant(np.int64(1))])], to=1)
    d.keep(d.emit("Add", [x, d.emit("Mul", [line, d.floats(0.125)])]))


@draw(rows=1, small=2)
def kept(d):
    """Some of the rows, by a constant or by what comes in."""
    x, r = d.pick(range(1, 5), where=d.known), d.random
    axis = r.randrange(len(d.shape(x)))
    size = d.shape(x)[axis]
    flags = d.numbers.random(size) < 0.6
    d.keep(d.emit("Compress", [x, d.constant(flags) if r.random() < 0.6 else d.input([size], "bool", lambda shape: flags)], axis=axis))


@draw(rows=1, small=1)
def found(d):
    x = d.pick(range(1, 5))
    d.keep(d.emit("NonZero", [d.emit("Greater", [x, d.floats(0.25)])]))


@draw(rows=1, small=1)
def seldom_moves(d):
    r = d.random
    x = d.pick(range(2, 4), where=lambda v: d.known(v) and 0 not in d.shape(v))
    op = r.choice(["ReverseSequence", "EyeLike", "CenterCropPad"])
    rows, columns = d.shape(x)[:2]
    if op == "ReverseSequence":
        time = r.randint(0, 1)
        batch, steps = (columns, rows) if time == 0 else (rows, columns)
        d.keep(d.emit(op, [x, d.constant(d.numbers.integers(1, steps + 1, batch))], time_axis=time, batch_axis=1 - time))
    elif op == "EyeLike":
        if len(d.shape(x)) > 2:
            raise Unfit("of rank 2")
        d.keep(d.emit("Add", [x, d.emit(op, [x], k=r.randint(-2, 2))]))
    else:
        least(d, 18)
        d.keep(d.emit(op, [x, d.ints(r.randint(1, rows + 3), r.randint(1, columns + 3))], axes=[0, 1]))


@draw(rows=1, image=1, small=2)
def parts_joined(d):
    """Of an input of its own: how many parts there are has to be known while compiling."""
    r = d.random
    x = d.input([r.choice([1, 2, 3, 5, 8, 16, 17]) for _ in range(r.randint(1, 4))])
    axis, to = (r.randrange(len(d.shape(x))) for _ in range(2))
    size, to = r.choice([1, 2, 3, d.size(x, axis)]), axis if r.random() < 0.7 else to
    d.keep(d.emit("PartsJoined", [x, d.constant(np.int64(size)), d.constant(np.int64(0))], axis=axis, to=to, turned=r.randint(0, 1)))


@draw(rows=1, small=2)
def unique(d):
    x = d.pick(range(1, 4), floats=False, where=lambda v: d.net.trials[0][v][0].dtype == np.int64 and 0 not in d.shape(v))
    d.keep(*d.emit("Unique", [x], 4, sorted=1))


@draw(rows=2, small=1)
def dft(d):
    least(d, 17)
    x, r = d.pick(range(2, 5), where=lambda v: 0 not in d.shape(v)), d.random
    axis, sides = r.randrange(1, len(d.shape(x))), r.choice([{}, {"inverse": 1}, {"onesided": 1}])
    if not d.size(x, axis) or d.size(x, axis) > 130:
        raise Unfit("unknown, or long")
    y = d.emit("Unsqueeze", [x, d.ints(-1)])
    if "onesided" not in sides and r.random() < 0.4:
        y = d.emit("Concat", [y, d.emit("Neg", [y])], axis=-1)
    if d.net.opset >= 20:
        d.keep(d.emit("DFT", [y, "", d.constant(np.int64(axis))], **sides))
    else:
        d.keep(d.emit("DFT", [y], axis=axis, **sides))


@draw(image=2)
def grid_sample(d):
    least(d, 16)
    x, r = d.pick(4, where=lambda v: d.size(v, 0) and 0 not in d.shape(v)), d.random
    if d.net.kind == "f64":
        raise Unfit("places are float32")
    batch, rows, columns, corners = d.size(x, 0), r.randint(2, 9), r.randint(2, 9), r.randint(0, 1)
    if d.net.opset >= 20 and r.random() < 0.5:
        size = d.ints(batch, 1, rows, columns)
        grid = d.emit("AffineGrid", [d.floats(d.numbers.uniform(-1, 1, (batch, 2, 3))), size], align_corners=corners)
    else:
        grid = d.input([batch, rows, columns, 2], data=lambda shape: d.numbers.uniform(-1.3, 1.3, shape))
    attrs = dict(mode="linear" if d.net.opset >= 20 else "bilinear", padding_mode=r.choice(["zeros", "border"]), align_corners=corners)
    d.keep(d.emit("GridSample", [x, grid], **attrs))


@draw(rows=1, small=1)
def scan(d):
    x, r = d.pick(range(1, 4), where=lambda v: d.size(v, 0)), d.random
    shape = [d.size(x, i) for i in range(1, len(d.shape(x)))]
    if None in shape or d.shape(x)[0] > 64:
        raise Unfit("sizes unknown, or too many turns")
    d.keep(*d.emit("Scan", [d.input(shape), x], 2, body=r.choice(["Add", "Max", "Min"])))


@draw(image=1)
def col2im(d):
    least(d, 18)
    r = d.random
    h, w, kh, kw = r.randint(3, 9), r.randint(3, 9), r.randint(1, 3), r.randint(1, 3)
    x = d.input([r.choice([1, 2]), r.choice([1, 3]) * kh * kw, (h - kh + 1) * (w - kw + 1)])
    d.keep(maybe_activated(d, d.emit("Col2Im", [x, d.ints(h, w), d.ints(kh, kw)])))
