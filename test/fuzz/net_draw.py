"""Random networks: each op of DRAWS tries to put itself on values that are there."""

import numpy as np

from net_graph import DTYPES, IR_VERSIONS, Input, Net, Node, Unfit

CHANNELS = [1, 2, 3, 4, 5, 6, 8, 11, 12, 16, 18, 20, 24, 28, 32, 36, 40, 42, 48, 56, 64, 72, 96]
IMAGE = [1, 2, 3, 5, 7, 8, 13, 16, 23, 32, 46, 57]
LENGTH = [1, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 100, 128, 130, 257]
EVEN = [8, 16, 32, 64, 96, 128]  # sizes that fast kernels like
MANY_PRODUCTS = 2e7
DRAWS = []  # (function, {flavour: weight})
FLAVOURS = ("image", "rows", "mixed", "small")


def draw(image=0, rows=0, mixed=1, small=0):
    def add(function):
        DRAWS.append((function, {"image": image, "rows": rows, "mixed": mixed, "small": small}))
        return function

    return add


class Drawing:
    """A net that grows. |random| draws what it looks like, |numbers| what is in it."""

    def __init__(self, random, numbers, kinds, opset, symbolic, sparse):
        self.random, self.numbers, self.sparse = random, numbers, sparse
        self.net = Net(*kinds, opset, 2 if symbolic else 1, numbers)
        self.live, self.count = [], 0
        self.channels, self.lengths = random.choice([(CHANNELS, LENGTH), (CHANNELS, LENGTH), (EVEN, EVEN)])

    # ---- What is there ----
    def shape(self, name, trial=0):
        return self.net.trials[trial][name][0].shape

    def size(self, name, axis):
        """The size along an axis, where it is the same in all trials."""
        found = {self.shape(name, t)[axis] for t in range(len(self.net.trials))}
        return found.pop() if len(found) == 1 else None

    def known(self, name):
        return all(self.size(name, axis) is not None for axis in range(len(self.shape(name))))

    def same_shape(self, a, b):
        return all(self.shape(a, t) == self.shape(b, t) for t in range(len(self.net.trials)))

    def is_float(self, name):
        return self.net.trials[0][name][0].dtype == np.float64

    def pick(self, rank=None, floats=True, where=lambda name: True):
        """One of the values that fit, rather a late one."""
        ranks = range(rank, rank + 1) if isinstance(rank, int) else rank or range(0, 7)
        fit = [v for v in self.live if len(self.shape(v)) in ranks and self.is_float(v) == floats and where(v)]
        if not fit:
            raise Unfit("nothing fits")
        return fit[-1] if self.random.random() < 0.6 else self.random.choice(fit)

    # ---- What is added ----
    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, array):
        name = self.name("c")
        self.net.add_constant(name, np.asarray(array))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def floats(self, array):
        return self.constant(np.asarray(array, DTYPES[self.net.kind]))

    def normal(self, shape, scale=1.0):
        return self.floats(self.numbers.standard_normal(shape) * scale)

    def positive(self, shape):
        return self.floats(self.numbers.uniform(0.5, 1.5, shape))

    def weight(self, shape, fan):
        """Random, with zeros in patterns when the net is to be sparse."""
        values = self.numbers.standard_normal(shape) / np.sqrt(max(fan, 1))
        if self.sparse and self.random.random() < 0.7:
            values *= zeros(self.random, self.numbers, shape)
        return self.floats(values)

    def emit(self, op, inputs, count=1, **attrs):
        attrs = {key: float(np.float32(v)) if isinstance(v, float) else v for key, v in attrs.items()}  # as ONNX keeps them
        outputs = [self.name("v") for _ in range(count)]
        self.net.add_node(Node(op, list(inputs), outputs, attrs))
        return outputs[0] if count == 1 else outputs

    def keep(self, *names):
        self.live += names

    def input(self, dims, kind=None, data=None):
        """dims: sizes, or (symbol, sizes of the trials)"""
        name = self.name("x")
        arrays = []
        for trial in range(len(self.net.trials)):
            shape = [d[1][trial] if isinstance(d, tuple) else d for d in dims]
            array = data(shape) if data else self.numbers.standard_normal(shape)
            arrays.append(np.asarray(array).astype(DTYPES[kind or self.net.kind]))
        self.net.add_input(name, Input(kind or self.net.kind, [d[0] if isinstance(d, tuple) else d for d in dims], arrays))
        return name

    def symbol(self, size, chance):
        """|size|, or with |chance| a symbol that has it in the first trial and another in the second."""
        if len(self.net.trials) < 2 or self.random.random() >= chance:
            return size
        name = self.name("n")
        return name, (size, self.random.choice([0, 1, 2, max(1, size - 1), size + 1, 2 * size, size + 7]))


def zeros(random, numbers, shape):
    """A mask of ones and zeros: single ones, rows, columns, blocks, or two of four."""
    rows = shape[0]
    flat = np.ones((rows, int(np.prod(shape[1:]))))
    share = random.choice([0.3, 0.6, 0.8, 0.9, 0.97, 1.0])
    kind = random.choice(["single", "rows", "columns", "blocks", "two of four"])
    if kind == "single":
        flat = (numbers.random(flat.shape) >= share) * 1.0
    elif kind == "rows":
        flat[numbers.random(rows) < share] = 0
    elif kind == "columns":
        flat[:, numbers.random(flat.shape[1]) < share] = 0
    elif kind == "blocks":
        size = random.choice([2, 4, 8, 16])
        coarse = numbers.random((-(-rows // size), -(-flat.shape[1] // size))) >= share
        flat = np.kron(coarse, np.ones((size, size)))[:rows, :flat.shape[1]]
    else:
        order = numbers.random((rows, -(-flat.shape[1] // 4), 4)).argsort(-1)
        flat = (order < 2).reshape(rows, -1)[:, :flat.shape[1]] * 1.0
    return flat.reshape(shape)


# ---- Inputs ----

def start(d, flavour):
    r = d.random
    if flavour == "image" or (flavour == "mixed" and r.random() < 0.4):
        h = r.choice(IMAGE)
        w = r.choice([h, max(1, h // 2), h + 3])
        batch = d.symbol(r.choice([1, 1, 1, 2]), 0.5)
        d.keep(d.input([batch, r.choice(d.channels), d.symbol(h, 0.4), d.symbol(w, 0.4)]))
    elif flavour in ("rows", "mixed"):
        lead = [d.symbol(r.choice([1, 2, 3, 12]), 0.3) for _ in range(r.randint(0, 2))]
        d.keep(d.input([*lead, d.symbol(r.choice(d.lengths), 0.4), r.choice(d.lengths)]))
    else:
        rank = r.randint(0, 5)
        d.keep(d.input([d.symbol(r.choice([1, 2, 3, 4, 5, 7, 8, 16, 17]), 0.3) for _ in range(rank)]))


# ---- Images ----

ACTIVATIONS = ["Relu", "HardSwish", "Clip", "Sigmoid", "LeakyRelu", "PRelu", "Gelu", "Swish", "Elu", "HardSigmoid", "Tanh"]


def activate(d, x, op=None):
    op = op or d.random.choice([op for op in ACTIVATIONS if op != "HardSwish" or d.net.opset >= 14])
    if op == "Clip":
        return d.emit("Clip", [x, d.floats(0.0), d.floats(6.0)])
    if op == "Swish":
        return d.emit("Mul", [x, d.emit("Sigmoid", [x])])
    if op == "Gelu" and d.net.opset < 20:
        return gelu(d, x)
    if op == "PRelu":
        rank = len(d.shape(x))
        shape = [d.size(x, 1), *[1] * (rank - 2)] if rank > 1 and d.size(x, 1) else [1]
        return d.emit("PRelu", [x, d.normal(shape)])
    attrs = {"LeakyRelu": {"alpha": 0.125}, "Elu": {"alpha": 0.75}, "HardSigmoid": {"alpha": 0.25, "beta": 0.5}}
    return d.emit(op, [x], **attrs.get(op, {}))


def gelu(d, x):
    y = d.emit("Erf", [d.emit("Div", [x, d.floats(2.0**0.5)])])
    return d.emit("Mul", [d.emit("Mul", [x, d.emit("Add", [y, d.floats(1.0)])]), d.floats(0.5)])


def maybe_activated(d, x):
    return activate(d, x) if d.random.random() < 0.5 else x


def affordable(*factors):
    if np.prod([float(f) for f in factors]) > MANY_PRODUCTS:
        raise Unfit("too many products")


def window(d, n, kernels, strides, dilations=(1,)):
    r = d.random
    kernel = [r.choice(kernels)] * n if r.random() < 0.8 else [r.choice(kernels) for _ in range(n)]
    dilation = [r.choice(dilations)] * n
    half = [(k - 1) * e // 2 for k, e in zip(kernel, dilation)]
    pads = half * 2 if r.random() < 0.7 else [r.randint(0, half[i % n]) for i in range(2 * n)]
    stride = [r.choice(strides)] * n if r.random() < 0.8 else [r.choice(strides) for _ in range(n)]
    attrs = dict(kernel_shape=kernel, strides=stride, dilations=dilation)
    return attrs | (dict(auto_pad=r.choice(["SAME_UPPER", "SAME_LOWER"])) if r.random() < 0.1 else dict(pads=pads))


def conv_on(d, x, out, group, attrs):
    c = d.size(x, 1)
    kernel = attrs["kernel_shape"]
    affordable(out, c // group, np.prod(kernel), np.prod(d.shape(x)[2:]), d.shape(x)[0])
    inputs = [x, d.weight((out, c // group, *kernel), c // group * int(np.prod(kernel)))]
    if d.random.random() < 0.6:
        inputs.append(d.normal((out,)))
    return d.emit("Conv", inputs, group=group, **attrs)


def image(d):
    return d.pick(range(3, 6), where=lambda v: d.size(v, 1))


@draw(image=8, mixed=2)
def conv(d):
    x = image(d)
    n = len(d.shape(x)) - 2
    attrs = window(d, n, [3, 3, 5, 2, 7, 1], [1, 1, 1, 2, 3], [1, 1, 1, 2])
    d.keep(maybe_activated(d, conv_on(d, x, d.random.choice(d.channels), 1, attrs)))


@draw(image=6, mixed=2)
def pointwise(d):
    x = image(d)
    n = len(d.shape(x)) - 2
    attrs = dict(kernel_shape=[1] * n, strides=[d.random.choice([1, 1, 1, 2])] * n)
    d.keep(maybe_activated(d, conv_on(d, x, d.random.choice(d.channels), 1, attrs)))


@draw(image=5)
def grouped(d):
    x = image(d)
    n, c = len(d.shape(x)) - 2, d.size(x, 1)
    group = c if d.random.random() < 0.7 else d.random.choice([g for g in (1, 2, 3, 4, 6, 8) if c % g == 0])
    out = group * d.random.choice([1, 1, 1, 2, 3, 8])
    d.keep(maybe_activated(d, conv_on(d, x, out, group, window(d, n, [3, 3, 5, 2], [1, 1, 2, 3], [1, 1, 2]))))


@draw(image=2)
def conv_transpose(d):
    x = image(d)
    n, c, r = len(d.shape(x)) - 2, d.size(x, 1), d.random
    group = r.choice([1, 1, 1, *[g for g in (2, c) if c % g == 0]])
    out, kernel, stride = r.choice([1, 2, 3, 5, 8, 16, 24]), r.choice([1, 2, 3, 4]), r.choice([1, 2, 2, 3])
    affordable(c, out, kernel**n, np.prod(d.shape(x)[2:]), d.shape(x)[0])
    inputs = [x, d.weight((c, out, *[kernel] * n), c // group)]
    if r.random() < 0.6:
        inputs.append(d.normal((out * group,)))
    pads = [r.randint(0, (kernel - 1) // 2) for _ in range(2 * n)] if r.random() < 0.4 else [0] * 2 * n
    extra = r.randint(0, stride - 1) if r.random() < 0.3 else 0
    d.keep(maybe_activated(d, d.emit("ConvTranspose", inputs, group=group, kernel_shape=[kernel] * n, strides=[stride] * n,
                                     pads=pads, output_padding=[extra] * n)))


@draw(image=4)
def pool(d):
    x = image(d)
    n, r = len(d.shape(x)) - 2, d.random
    attrs = window(d, n, [2, 3, 3, 5], [1, 2, 2, 3])
    del attrs["dilations"]
    if "pads" in attrs:
        attrs["pads"] = [min(p, attrs["kernel_shape"][i % n] - 1) for i, p in enumerate(attrs["pads"])]
        attrs["ceil_mode"] = int(r.random() < 0.3)
    if r.random() < 0.5:
        d.keep(d.emit("MaxPool", [x], **attrs))
    elif d.net.opset >= 18 and d.net.rounded in ("f32", "f64") and r.random() < 0.2:
        d.keep(d.emit("LpPool", [x], **attrs, p=r.choice([1, 2, 3])))
    else:  # ONNX Runtime takes the pads of auto_pad for none
        counts = 0 if attrs.get("ceil_mode") or "auto_pad" in attrs else r.randint(0, 1)
        d.keep(d.emit("AveragePool", [x], **attrs, count_include_pad=counts))


@draw(image=2)
def global_pool(d):
    d.keep(d.emit(d.random.choice(["GlobalAveragePool", "GlobalMaxPool"]), [image(d)]))


@draw(image=2)
def squeeze_excite(d):
    x = image(d)
    c, n = d.size(x, 1), len(d.shape(x)) - 2
    y = d.emit("GlobalAveragePool", [x])
    inner = d.random.choice([1, 2, 4, 8])
    y = d.emit("Relu", [conv_on(d, y, inner, 1, dict(kernel_shape=[1] * n))])
    y = d.emit("HardSigmoid", [conv_on(d, y, c, 1, dict(kernel_shape=[1] * n))], alpha=0.2, beta=0.5)
    d.keep(d.emit("Mul", [x, y] if d.random.random() < 0.5 else [y, x]))


@draw(image=3)
def resize(d):
    x, r = d.pick(range(3, 6)), d.random
    if d.net.kind == "f64":
        raise Unfit("places are float32")
    mode = r.choice(["nearest", "linear", "cubic"] if len(d.shape(x)) == 4 else ["nearest", "linear"])
    if mode == "nearest":
        how = r.choice([("asymmetric", "floor"), ("asymmetric", "ceil"), ("half_pixel", "round_prefer_floor"),
                        ("half_pixel", "round_prefer_ceil")])
        attrs = dict(mode=mode, coordinate_transformation_mode=how[0], nearest_mode=how[1])
    else:
        how = r.choice(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
        attrs = dict(mode=mode, coordinate_transformation_mode=how)
    if r.random() < 0.7 or not d.known(x):
        scales = [1, 1, r.choice([1, 2, 2, 3, 4]), *(r.choice([1, 2, 2, 3]) for _ in d.shape(x)[3:])]
        d.keep(d.emit("Resize", [x, "", d.constant(np.array(scales, np.float32))], **attrs))
    else:
        shape = d.shape(x)
        wanted = [shape[0], shape[1], *(s * r.choice([1, 2, 4]) if mode == "nearest" else r.randint(1, 2 * s + 1) for s in shape[2:])]
        d.keep(d.emit("Resize", [x, "", "", d.ints(*wanted)], **attrs))


@draw(image=3)
def batch_norm(d):
    x = image(d)
    c = (d.size(x, 1),)
    d.keep(maybe_activated(d, d.emit("BatchNormalization", [x, d.normal(c), d.normal(c), d.normal(c), d.positive(c)],
                                     epsilon=1e-3)))


@draw(image=1)
def instance_norm(d):
    x = image(d)
    c = (d.size(x, 1),)
    d.keep(d.emit("InstanceNormalization", [x, d.normal(c), d.normal(c)], epsilon=1e-2))


@draw(image=2)
def shuffle(d):
    x, r = d.pick(4), d.random
    if r.random() < 0.5:
        block = r.choice([2, 3])
        if r.random() < 0.5:
            if any(side % block for t in range(len(d.net.trials)) for side in d.shape(x, t)[2:]):
                raise Unfit("no multiple of the block")
            d.keep(d.emit("SpaceToDepth", [x], blocksize=block))
        else:
            d.keep(d.emit("DepthToSpace", [x], blocksize=block, mode=r.choice(["DCR", "CRD"])))
        return
    n, c, h, w = (d.size(x, i) for i in range(4))
    groups = [g for g in (2, 3, 4) if c and c % g == 0]
    if not groups or h is None or w is None:
        raise Unfit("no groups")
    g = r.choice(groups)
    y = d.emit("Reshape", [x, d.ints(0, g, c // g, h, w)])
    d.keep(d.emit("Reshape", [d.emit("Transpose", [y], perm=[0, 2, 1, 3, 4]), d.ints(n or -1, c, h, w)]))


# ---- Rows and products ----

@draw(rows=8, image=1, mixed=3)
def matmul(d):
    x, r = d.pick(range(1, 6), where=lambda v: d.size(v, -1)), d.random
    k, out = d.size(x, -1), r.choice(d.lengths)
    affordable(k, out, np.prod(d.shape(x)[:-1]))
    y = d.emit("MatMul", [x, d.weight((k, out), k)])
    if r.random() < 0.6:
        y = d.emit("Add", [y, d.normal((out,))] if r.random() < 0.5 else [d.normal((out,)), y])
    d.keep(maybe_activated(d, y))


@draw(rows=2, image=1)
def matmul_from_left(d):
    """The weight is the first operand, as of a transform along an axis that is not the last."""
    x, r = d.pick(range(2, 6), where=lambda v: d.size(v, -2)), d.random
    k, out = d.size(x, -2), r.choice(d.lengths)
    affordable(out, np.prod(d.shape(x)))
    d.keep(maybe_activated(d, d.emit("MatMul", [d.weight((out, k), k), x])))


@draw(rows=3)
def matmul_of_two(d):
    """With an input of its own on the other side, at times transposed, or the first operand with itself."""
    x, r = d.pick(range(2, 5)), d.random
    k, rank = d.size(x, -1), len(d.shape(x))
    if k is None or r.random() < 0.3:
        perm = [*range(rank - 2), rank - 1, rank - 2]
        y = d.emit("Transpose", [x], perm=perm)
        pair = [x, y] if r.random() < 0.5 else [y, x]
        k = k or 64
    else:
        lead = [d.size(x, i) or 1 for i in range(rank - 2)][r.randint(0, rank - 2):]
        lead = [n if r.random() < 0.8 else 1 for n in lead]
        out = d.symbol(r.choice(d.lengths), 0.3)
        affordable(k, out[1][0] if isinstance(out, tuple) else out, np.prod(d.shape(x)[:-1]))
        if r.random() < 0.5:
            y = d.input([*lead, k, out])
        else:
            y = d.emit("Transpose", [d.input([*lead, out, k])], perm=[*range(len(lead)), len(lead) + 1, len(lead)])
        pair = [x, y]
    affordable(*d.shape(pair[0]), d.shape(pair[1])[-1])
    d.keep(d.emit("Mul", [d.emit("MatMul", pair), d.floats(float(k)**-0.5)]))


@draw(rows=4, image=1)
def gemm(d):
    x, r = d.pick(2, where=lambda v: d.size(v, 1)), d.random
    across = r.random() < 0.2
    k = d.size(x, 0) if across else d.size(x, 1)
    if k is None:
        raise Unfit("unknown size")
    out, transposed = r.choice(d.lengths), r.random() < 0.5
    inputs = [x, d.weight((out, k) if transposed else (k, out), k)]
    if r.random() < 0.7:
        inputs.append(d.normal(r.choice([(out,), (1, out), (1, 1), ()])))
    attrs = dict(alpha=r.choice([1.0, 1.0, 0.5]), beta=r.choice([1.0, 1.0, 0.25]))
    d.keep(maybe_activated(d, d.emit("Gemm", inputs, transA=int(across), transB=int(transposed), **attrs)))


@draw(rows=4)
def norm(d):
    x, r = d.pick(range(1, 6), where=lambda v: d.size(v, -1)), d.random
    n = d.size(x, -1)
    if d.net.opset >= 17 and r.random() < 0.6:
        scale = d.normal((n,))
        d.keep(d.emit("LayerNormalization", [x, scale, *([d.normal((n,))] if r.random() < 0.8 else [])], axis=-1, epsilon=1e-2))
        return
    centred = d.emit("Sub", [x, reduce_on(d, "ReduceMean", x, [-1], 1)])
    square = d.emit("Pow", [centred, d.floats(2.0)]) if r.random() < 0.5 else d.emit("Mul", [centred, centred])
    deviation = d.emit("Sqrt", [d.emit("Add", [reduce_on(d, "ReduceMean", square, [-1], 1), d.floats(1e-2)])])
    y = d.emit("Mul", [d.emit("Div", [centred, deviation]), d.normal((n,))])
    d.keep(d.emit("Add", [y, d.normal((n,))]))


@draw(rows=3, image=1, small=1)
def softmax(d):
    x = d.pick(range(1, 6))
    rank = len(d.shape(x))
    axis = d.random.choice([-1, -1, d.random.randint(0, rank - 1)])
    d.keep(d.emit(d.random.choice(["Softmax", "Softmax", "LogSoftmax"]), [x], axis=axis))


@draw(rows=3)
def attention(d):
    """Queries that are there; keys and values from the same rows or from inputs; a mask or none."""
    x, r = d.pick(range(2, 5), where=lambda v: d.size(v, -1)), d.random
    rank, n = len(d.shape(x)), d.size(x, -1)
    lead = [d.size(x, i) for i in range(rank - 2)]
    if None in lead:
        raise Unfit("unknown sizes")
    length, width = d.symbol(r.choice([1, 2, 5, 16, 33, 64, 65, 130]), 0.3), r.choice([8, 16, 40, 64])
    first = length[1][0] if isinstance(length, tuple) else length
    affordable(first, n + width, np.prod(d.shape(x)[:-1]))
    k, v = d.input([*lead, length, n]), d.input([*lead, length, width])
    perm = [*range(rank - 2), rank - 1, rank - 2]
    scores = d.emit("MatMul", [x, d.emit("Transpose", [k], perm=perm)])
    factor = d.floats(float(n)**0.5)
    scores = d.emit("Div", [scores, factor]) if r.random() < 0.5 else d.emit("Mul", [scores, d.floats(float(n)**-0.5)])
    if r.random() < 0.5 and d.known(scores):
        scores = d.emit("Add", [scores, mask(d, d.shape(scores))])
    d.keep(d.emit("MatMul", [d.emit("Softmax", [scores], axis=-1), v]))


def mask(d, shape):
    far = d.random.choice([-np.inf, -1e4 if d.net.rounded != "f16" else -100.0])
    hidden = d.numbers.random(shape[-2:]) < d.random.choice([0.2, 0.5, 0.9])
    hidden[:, 0] = False
    values = np.where(hidden, far, 0.0)
    if d.random.random() < 0.5 and np.isfinite(far):
        return d.input(list(values.shape), data=lambda shape: values)
    return d.floats(values)


@draw(rows=1)
def heads(d):
    """Rows of heads become heads of rows, attend to each other, and become rows again."""
    x, r = d.pick(3, where=lambda v: d.size(v, 2)), d.random
    width = d.size(x, 2)
    count = r.choice([h for h in (1, 2, 3, 4, 8) if width % h == 0])
    n = d.random.choice([8, 16, 24, 64])
    affordable(width, 3 * count * n, d.shape(x)[1])

    def head(perm):
        y = d.emit("Add", [d.emit("MatMul", [x, d.weight((width, count * n), width)]), d.normal((count * n,))])
        return d.emit("Transpose", [d.emit("Reshape", [y, d.ints(0, 0, count, n)])], perm=perm)

    scores = d.emit("MatMul", [head([0, 2, 1, 3]), head([0, 2, 3, 1])])
    weights = d.emit("Softmax", [d.emit("Mul", [scores, d.floats(n**-0.5)])], axis=-1)
    y = d.emit("Transpose", [d.emit("MatMul", [weights, head([0, 2, 1, 3])])], perm=[0, 2, 1, 3])
    d.keep(d.emit("Reshape", [y, d.ints(0, 0, count * n)]))


EQUATIONS = {2: ["ij,jk->ik", "ij,kj->ki"], 3: ["bij,jk->bik", "bij,kj->bki"], 4: ["bhij,jk->bhik", "bijh,hk->bkij"]}


@draw(rows=1)
def einsum(d):
    x = d.pick(range(2, 5), where=lambda v: d.size(v, -1))
    equation = d.random.choice(EQUATIONS[len(d.shape(x))])
    k, out = d.size(x, -1), d.random.choice(d.lengths)
    affordable(k, out, np.prod(d.shape(x)[:-1]))
    first = equation.split(",")[1][0] in equation.split(",")[0]
    d.keep(d.emit("Einsum", [x, d.weight((k, out) if first else (out, k), k)], equation=equation))


def reduce_on(d, op, x, axes, keep):
    if d.net.opset >= 18 or op == "ReduceSum":
        return d.emit(op, [x, d.ints(*axes)], keepdims=keep)
    return d.emit(op, [x], axes=axes, keepdims=keep)


@draw(rows=2, image=1, small=2)
def reduce(d):
    x, r = d.pick(range(1, 6)), d.random
    rank = len(d.shape(x))
    op = r.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                   "ReduceLogSumExp"])
    axes = r.sample(range(rank), r.randint(1, rank))
    d.keep(reduce_on(d, op, x, [a - rank if r.random() < 0.3 else a for a in axes], r.randint(0, 1)))


@draw(rows=1, image=1, small=1)
def chosen(d):
    x, r = d.pick(range(1, 6)), d.random
    axis = r.randrange(len(d.shape(x)))
    if r.random() < 0.5:
        d.keep(d.emit(r.choice(["ArgMax", "ArgMin"]), [x], axis=axis, keepdims=r.randint(0, 1)))
    else:
        count = r.randint(1, max(1, min(d.shape(x, t)[axis] for t in range(len(d.net.trials)))))
        d.keep(*d.emit("TopK", [x, d.ints(count)], 2, axis=axis, largest=r.randint(0, 1)))


@draw(rows=1, small=1)
def cum_sum(d):
    x, r = d.pick(range(1, 5)), d.random
    d.keep(d.emit("CumSum", [x, d.constant(np.int64(r.randrange(len(d.shape(x)))))], exclusive=r.randint(0, 1),
                  reverse=r.randint(0, 1)))


# ---- Elementwise ----

@draw(image=2, rows=3, mixed=4, small=4)
def unary(d):
    r = d.random
    if r.random() < 0.5:
        d.keep(activate(d, d.pick()))
        return
    x = d.pick()
    op = r.choice(["Exp", "Abs", "Neg", "Tanh", "Erf", "Softplus", "Softsign", "Sin", "Cos", "Atan", "Sqrt", "Log",
                   "Reciprocal", "Mish", "Floor", "Ceil", "Round", "Sign", "Identity"])
    if op in ("Sqrt", "Log", "Reciprocal"):
        x = d.emit("Add", [d.emit("Abs", [x]), d.floats(0.5)])
    if op == "Mish" and d.net.opset < 18:
        op = "Tanh"
    d.keep(d.emit(op, [x]))


def partner(d, x):
    """Something that broadcasts with x: itself, a value, a constant, or an input with some sizes of one."""
    r = d.random
    if r.random() < 0.5:
        fit = [v for v in d.live if d.is_float(v) and (d.same_shape(v, x) or 1 in d.shape(v) or not d.shape(v))]
        if fit:
            return r.choice(fit)
    shape = [d.size(x, i) if r.random() < 0.6 and d.size(x, i) else 1 for i in range(len(d.shape(x)))]
    shape = shape[r.randint(0, len(shape)):]
    return d.normal(shape) if r.random() < 0.6 else d.input(shape)


@draw(image=4, rows=4, mixed=4, small=6)
def binary(d):
    x, r = d.pick(), d.random
    y = partner(d, x)
    op = r.choice(["Add", "Add", "Mul", "Sub", "Max", "Min", "Div", "Sum", "Mean", "Pow"])
    if op == "Div":
        y = d.emit("Add", [d.emit("Abs", [y]), d.floats(0.5)])
    if op == "Pow":
        y = d.floats(r.choice([2.0, 3.0, 0.5]))
        x = d.emit("Abs", [x])
    pair = [x, y] if r.random() < 0.7 or op in ("Div", "Pow") else [y, x]
    y = d.emit(op, pair + ([x] if op in ("Sum", "Mean") and r.random() < 0.5 else []))
    d.keep(activate(d, y) if r.random() < 0.2 else y)


@draw(rows=1, image=1, small=2)
def where(d):
    x, r = d.pick(), d.random
    y = partner(d, x)
    condition = d.emit(r.choice(["Greater", "Less", "GreaterOrEqual", "LessOrEqual"]), [x, y])
    if r.random() < 0.3:
        condition = d.emit("Not", [condition])
    if r.random() < 0.3:
        condition = d.emit(r.choice(["And", "Or", "Xor"]), [condition, d.emit("Less", [x, d.floats(0.3)])])
    d.keep(d.emit("Where", [condition, x, y] if r.random() < 0.5 else [condition, y, d.floats(0.5)]))


@draw(rows=1, image=1, small=1)
def clip(d):
    x, r = d.pick(), d.random
    low, high = d.floats(r.uniform(-1, 0)), d.floats(r.uniform(0, 1))
    d.keep(d.emit("Clip", r.choice([[x, low, high], [x, low], [x, "", high]])))


@draw(rows=1, image=1, small=2)
def cast(d):
    if d.random.random() < 0.5:
        x = d.pick(floats=False)
        y = d.emit("Cast", [x], to=1)
        d.keep(d.emit("Mul", [y, d.floats(0.125)]))
    else:
        d.keep(d.emit("Cast", [d.pick()], to=d.random.choice([6, 7, 9])))


@draw(rows=1, image=1, small=2)
def integers(d):
    x, r = d.pick(floats=False, where=lambda v: d.net.trials[0][v][0].dtype in (np.int64, np.int32)), d.random
    dtype = d.net.trials[0][x][0].dtype
    y = d.constant(np.asarray(r.choice([1, 2, 3, 5, 7]), dtype))
    op = r.choice(["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less", "BitwiseAnd", "BitwiseOr", "BitwiseXor"])
    if op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor") and d.net.opset < 18:
        op = "Add"
    y = d.emit(op, [x, y])
    if np.abs(d.net.trials[0][y][0].astype(np.float64)).max(initial=0) < 1e6:
        d.keep(y)


@draw(rows=1, image=2)
def quantized(d):
    """Rounded to bytes and back; at times a product of two such between."""
    x, r = d.pick(range(2, 5)), d.random
    if d.net.kind != "f32":
        raise Unfit("float32 alone")
    kind = r.choice([np.uint8, np.int8])
    zero = d.constant(np.asarray(r.choice([0, 3, 100] if kind == np.uint8 else [0, -5, 17]), kind))
    scale = d.floats(r.choice([0.02, 0.05, 0.013]))
    y = d.emit("QuantizeLinear", [x, scale, zero])
    if r.random() < 0.4:
        d.keep(y)
    y = d.emit("DequantizeLinear", [y, scale, zero])
    k = d.size(y, -1)
    if len(d.shape(y)) < 4 and k and r.random() < 0.5:
        out = r.choice([1, 7, 16, 33])
        weight = d.constant(d.numbers.integers(-127, 128, (k, out)).astype(np.int8))
        per_channel = r.random() < 0.5
        scales = d.positive((out,)) if per_channel else d.floats(1.0)
        zeros_ = d.constant(np.zeros((out,) if per_channel else (), np.int8))
        weight = d.emit("DequantizeLinear", [weight, scales, zeros_], **(dict(axis=1) if per_channel else {}))
        y = d.emit("Mul", [d.emit("MatMul", [y, weight]), d.floats(0.01)])
    d.keep(y)


@draw(rows=1, image=1, small=1)
def integer_product(d):
    x, r = d.pick(range(2, 5), floats=False, where=lambda v: d.net.trials[0][v][0].dtype in (np.uint8, np.int8)), d.random
    dtype = d.net.trials[0][x][0].dtype
    zeros_ = [d.constant(np.asarray(r.choice([0, 3]), dtype)), d.constant(np.int8(r.choice([0, 5])))]
    if len(d.shape(x)) == 4 and d.size(x, 1) and r.random() < 0.6:
        weight = (r.choice([1, 4, 16, 17]), d.size(x, 1), 3, 3)
        affordable(*weight, *d.shape(x)[2:])
        op, attrs = "ConvInteger", dict(kernel_shape=[3, 3])
    else:
        weight, op, attrs = (d.size(x, -1) or 1, r.choice([1, 7, 16, 33])), "MatMulInteger", {}
        affordable(*weight, *d.shape(x)[:-1])
    y = d.emit(op, [x, d.constant(d.numbers.integers(-127, 128, weight).astype(np.int8)), *zeros_], **attrs)
    d.keep(y if r.random() < 0.3 else d.emit("Mul", [d.emit("Cast", [y], to=1), d.floats(1e-4)]))


@draw(rows=1, image=1, small=1)
def control(d):
    x, r = d.pick(), d.random
    y = partner(d, x) if r.random() < 0.5 else x
    if d.shape(d.emit("Add", [x, y])) != d.shape(x):
        raise Unfit("the shape changes")
    if r.random() < 0.5:
        condition = d.input([], "bool", lambda shape: d.random.random() < 0.5)
        d.keep(d.emit("If", [condition, x, y], **{"then": r.choice(["Add", "Max"]), "else": r.choice(["Mul", "Sub", "Min"])}))
    else:
        count = d.ints(r.randint(1, 4)) if r.random() < 0.7 else d.input([], "i64", lambda shape: d.random.randint(1, 4))
        d.keep(*d.emit("Loop", [count, x, y], 2, body=r.choice(["Sub", "Max", "Add"])))


# ---- Moving data ----

@draw(image=2, rows=3, mixed=3, small=4)
def transpose(d):
    x, r = d.pick(range(1, 7)), d.random
    perm = list(range(len(d.shape(x))))
    r.shuffle(perm)
    d.keep(d.emit("Transpose", [x], perm=perm))


def regrouped(d, x):
    """A shape with the same number of elements: neighbours joined, or a size divided."""
    r, rank = d.random, len(d.shape(x))
    dims = [d.size(x, i) for i in range(rank)]
    if rank > 1 and r.random() < 0.6:
        i = r.randrange(rank - 1)
        joined = dims[i] * dims[i + 1] if dims[i] and dims[i + 1] else None
        dims[i:i + 2] = [joined]
    else:
        i = r.randrange(rank) if rank else 0
        size = dims[i] if rank else 1
        parts = [p for p in (1, 2, 3, 4, 5, 7, 8, 16) if size and size % p == 0]
        if not parts:
            raise Unfit("nothing to divide")
        p = r.choice(parts)
        dims[i:i + 1] = [p, size // p] if r.random() < 0.5 else [size // p, p]
    unknown = [i for i, n in enumerate(dims) if n is None]
    if len(unknown) > 1:
        raise Unfit("two unknown sizes")
    if not unknown and dims and r.random() < 0.4 and 0 not in dims:
        dims[r.randrange(len(dims))] = -1
    return [-1 if n is None else n for n in dims]


@draw(image=2, rows=3, mixed=3, small=4)
def reshape(d):
    x, r = d.pick(range(1, 7)), d.random
    if r.random() < 0.25:
        d.keep(d.emit("Flatten", [x], axis=r.randint(0, len(d.shape(x)))))
    elif r.random() < 0.25:
        rank = len(d.shape(x))
        keep = r.randrange(rank)
        lead = d.emit("Slice", [d.emit("Shape", [x]), d.ints(0), d.ints(keep), d.ints(0), d.ints(1)])
        d.keep(d.emit("Reshape", [x, d.emit("Concat", [lead, d.ints(-1)], axis=0)]))
    else:
        d.keep(d.emit("Reshape", [x, d.ints(*regrouped(d, x))]))


@draw(small=2, rows=1)
def squeeze(d):
    r = d.random
    if r.random() < 0.5:
        x = d.pick(range(0, 5))
        d.keep(d.emit("Unsqueeze", [x, d.ints(r.randint(0, len(d.shape(x))))]))
    else:
        x = d.pick(range(1, 7), where=lambda v: 1 in d.shape(v))
        ones = [i for i in range(len(d.shape(x))) if d.size(x, i) == 1]
        if not ones:
            raise Unfit("no size is 1 in all trials")
        d.keep(d.emit("Squeeze", [x, d.ints(*r.sample(ones, 1 if r.random() < 0.7 else len(ones)))]))


@draw(image=4, rows=2, mixed=3, small=3)
def concat(d):
    x, r = d.pick(range(1, 6)), d.random
    axis = r.choice([1, r.randrange(len(d.shape(x)))]) if len(d.shape(x)) > 1 else 0

    def fits(v):
        return all(len(d.shape(v, t)) == len(d.shape(x, t)) and
                   all(a == b or i == axis for i, (a, b) in enumerate(zip(d.shape(v, t), d.shape(x, t))))
                   for t in range(len(d.net.trials)))

    parts = [d.pick(where=fits) for _ in range(r.randint(1, 3))]
    parts.insert(r.randint(0, len(parts)), x)
    d.keep(d.emit("Concat", parts, axis=axis if r.random() < 0.7 else axis - len(d.shape(x))))


@draw(image=3, rows=2, mixed=2, small=2)
def split(d):
    x, r = d.pick(range(1, 6)), d.random
    axis = r.choice([1, r.randrange(len(d.shape(x)))]) if len(d.shape(x)) > 1 else 0
    n = d.size(x, axis)
    if not n or n < 2:
        raise Unfit("nothing to split")
    first = r.choice([n // 2, r.randint(1, n - 1)])
    parts = [first, n - first]
    if parts[1] > 1 and r.random() < 0.3:
        parts[1:] = [1, parts[1] - 1]
    d.keep(*d.emit("Split", [x, d.ints(*parts)], len(parts), axis=axis))


@draw(image=2, rows=2, mixed=2, small=3)
def cut(d):
    x, r = d.pick(range(1, 6)), d.random
    rank = len(d.shape(x))
    axes = r.sample(range(rank), r.choice([1, 1, min(2, rank)]))
    starts, ends, steps = [], [], []
    for axis in axes:
        n = min(d.shape(x, t)[axis] for t in range(len(d.net.trials)))
        step = r.choice([1, 1, 1, 2, 3, -1, -2])
        a = r.randint(0, max(n - 1, 0))
        b = r.randint(a + 1, n + 2)
        starts.append(a if step > 0 else b - 1)
        ends.append(r.choice([b, 2**62]) if step > 0 else r.choice([a - 1 if a else -2**62, -2**62]))
        steps.append(step)
    if r.random() < 0.3:
        axes = [a - rank for a in axes]
    d.keep(d.emit("Slice", [x, d.ints(*starts), d.ints(*ends), d.ints(*axes), d.ints(*steps)]))


@draw(image=2, rows=1, small=2)
def pad(d):
    x, r = d.pick(range(1, 6)), d.random
    rank = len(d.shape(x))
    pads = [r.choice([0, 0, 1, 2]) for _ in range(2 * rank)]
    if rank == 4 and r.random() < 0.6:
        pads[:2] = pads[4:6] = [0, 0]
    mode = r.choice(["constant", "constant", "reflect", "edge"])
    value = [d.floats(r.choice([0.0, 1.5, -2.0]))] if mode == "constant" and r.random() < 0.6 else []
    d.keep(d.emit("Pad", [x, d.ints(*pads), *value], mode=mode))


@draw(rows=2, mixed=2, small=3)
def gather(d):
    x, r = d.pick(range(1, 6)), d.random
    axis = r.randrange(len(d.shape(x)))
    n = min(d.shape(x, t)[axis] for t in range(len(d.net.trials)))
    if n < 1:
        raise Unfit("nothing to gather")

    def indices(shape):
        return d.numbers.integers(-n, n, shape)

    kind = r.choice(["constant", "one", "input", "elements", "nd"])
    if kind == "constant":
        d.keep(d.emit("Gather", [x, d.constant(indices(r.choice([(3,), (1,), (2, 3), ()])))], axis=axis))
    elif kind == "one":
        d.keep(d.emit("Gather", [x, d.constant(np.int64(r.randrange(n)))], axis=axis))
    elif kind == "input":
        ids = d.input([d.symbol(r.choice([1, 2, 5]), 0.3)], r.choice(["i64", "i32"]), indices)
        d.keep(d.emit("Gather", [x, ids], axis=axis))
    elif kind == "elements":
        shape = [r.randint(1, min(d.shape(x, t)[i] for t in range(len(d.net.trials))) or 1) for i in range(len(d.shape(x)))]
        shape[axis] = r.randint(1, 5)
        d.keep(d.emit("GatherElements", [x, d.constant(indices(shape))], axis=axis))
    else:
        first = min(d.shape(x, t)[0] for t in range(len(d.net.trials)))
        if first < 1:
            raise Unfit("nothing to gather")
        d.keep(d.emit("GatherND", [x, d.constant(d.numbers.integers(-first, first, (r.randint(1, 4), 1)))]))


@draw(rows=1, small=1)
def scatter(d):
    x, r = d.pick(range(1, 5), where=d.known), d.random
    shape = d.shape(x)
    if not shape[0]:
        raise Unfit("nothing to scatter to")
    count = r.randint(1, min(3, shape[0]))
    rows = np.array(r.sample(range(shape[0]), count), np.int64)[:, None]
    d.keep(d.emit("ScatterND", [x, d.constant(rows), d.input([count, *shape[1:]])]))


@draw(rows=1, small=2)
def expand(d):
    x, r = d.pick(range(0, 5)), d.random
    rank = len(d.shape(x))
    if r.random() < 0.5:
        shape = [r.choice([2, 3, 5]) if d.size(x, i) == 1 and r.random() < 0.7 else 1 for i in range(rank)]
        d.keep(d.emit("Expand", [x, d.ints(*([2] if r.random() < 0.2 else []), *shape)]))
    elif rank:
        d.keep(d.emit("Tile", [x, d.ints(*(r.choice([1, 1, 2, 3]) for _ in range(rank)))]))


@draw(rows=1, small=1)
def triangle(d):
    if d.net.opset < 14:
        raise Unfit("opset")
    d.keep(d.emit("Trilu", [d.pick(range(2, 5))], upper=d.random.randint(0, 1)))


# ---- The whole ----

def grow(d, flavour, count):
    functions = [f for f, weights in DRAWS if weights[flavour]]
    weights = [w[flavour] for _, w in DRAWS if w[flavour]]
    for _ in range(count):
        for _ in range(8):
            state = len(d.net.nodes), len(d.live)
            try:
                d.random.choices(functions, weights)[0](d)
                break
            except Unfit:
                del d.net.nodes[state[0]:], d.live[state[1]:]


def draw_net(random, numbers, rounded=None):
    """A net (float32 where |rounded| says that it is computed in another type) whose outputs are what nothing else reads, and now and then a value in the middle; or None."""
    flavour = random.choice(FLAVOURS)
    kind = random.choices(["f32", "f16", "f64"], [10, 2, 1])[0]
    kinds = ("f32", rounded) if rounded else (kind, kind)
    d = Drawing(random, numbers, kinds, random.choice(list(IR_VERSIONS)), random.random() < 0.35, random.random() < 0.25)
    start(d, flavour)
    grow(d, flavour, random.choice([1, 2, 3, 4, 6, 8, 12]))
    net = d.net
    made = {name for node in net.nodes for name in node.outputs}
    read = {name for node in net.nodes for name in node.inputs}
    leaves = [v for v in d.live if v in made and v not in read]
    if not leaves:
        return None
    inner = [v for v in d.live if v in made and v in read]
    net.outputs = leaves[-5:] + (random.sample(inner, 1) if inner and random.random() < 0.3 else [])
    odd = [v for v in [*net.inputs, *net.constants] if v in read]  # outputs that nothing computes
    net.outputs += random.sample(odd, 1) if odd and random.random() < 0.05 else []
    used = read | set(net.outputs)
    net.inputs = {name: item for name, item in net.inputs.items() if name in used}
    return net
