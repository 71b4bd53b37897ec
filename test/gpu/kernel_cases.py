"""Kernels as the fuse stage makes them, with what they compute: MLIR text on buffers, and a reference in PyTorch.

A case is a name, the text of its function, the shapes and types of its arguments (the last is the result), and
reference(torch, *arguments) on float64 tensors. Run as a program, it writes the module of all cases, or of those that
are checked, or of those that are checked as code for an older card:

    kernel_cases.py [--checked | --ampere | --turing | --volta] > cases.mlir
"""
import re
import sys
from dataclasses import dataclass, replace
from typing import Callable


@dataclass
class Case:
    name: str
    text: str
    arguments: list  # (shape, "f16" | "bf16" | "f32" | "i32" | "i64": indices, in either direction, of argument 0)
    reference: Callable
    tolerance: float  # of the relative error in the Frobenius norm
    bar: str = ""  # what it is timed against: a key of compare_torch.PEERS
    sizes: tuple = ()


# 8-bit floats are bytes of which the last op of their conversion tells the type; here it stands for all of them.
FLOAT8 = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


def memref(shape, kind):
    return f"memref<{'x'.join(map(str, shape))}x{'i8' if kind in FLOAT8 else kind}>"


def extended(name, source, kind):
    if kind not in FLOAT8:
        return f"{name} = arith.extf {source} : {kind} to f32\n"
    return (f"{name}_bits = arith.extui {source} : i8 to i32\n"
            f"{name} = arith.bitcast {name}_bits {{o3.float8 = {FLOAT8[kind]}}} : i32 to f32\n")


def generic(maps, iterators, inputs, output, body, attributes=""):
    """inputs and output: (value, type); body: a function of the names of the block arguments that gives lines."""
    kinds = [t.rsplit("x", 1)[1][:-1] for _, t in inputs + [output]]
    names = [f"%i{k}" for k in range(len(inputs))] + ["%o"]
    ins = f" ins({', '.join(v for v, _ in inputs)} : {', '.join(t for _, t in inputs)})" if inputs else ""
    head = ", ".join(f"{n}: {k}" for n, k in zip(names, kinds))
    maps = ", ".join(f"affine_map<{m}>" for m in maps)
    iterators = ", ".join(f'"{i}"' for i in iterators)
    return (f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}{ins} "
            f"outs({output[0]} : {output[1]}){attributes} {{\n^bb0({head}):\n{body}}}\n")


def constants(*arguments):
    """Arguments that no kernel writes."""
    return f"o3.constants = array<i64: {', '.join(map(str, arguments))}>"


P, R = "parallel", "reduction"
TOLERANCES = {"f16": 3e-3, "bf16": 1e-2, "f32": 1e-5, "tf32": 2e-3, "e4m3": 2e-3, "e5m2": 2e-3}
FILL = "%z = arith.constant {0} : f32\nlinalg.yield %z : f32\n"


def function(name, arguments, body, attributes=""):
    head = ", ".join(f"%a{k}: {memref(*a)}" for k, a in enumerate(arguments))
    return f"func.func @{name}({head}){attributes} {{\n{body}return\n}}\n"


# ---- Products ----

EPILOGUES = {
    "none": ("", lambda torch, y, extras: y),
    "bias": ("%e0 = arith.extf %i1 : {0} to f32\n%y = arith.addf %i0, %e0 : f32\n",
             lambda torch, y, extras: y + extras[0]),
    "biasrelu": ("%e0 = arith.extf %i1 : {0} to f32\n%s = arith.addf %i0, %e0 : f32\n%c0 = arith.constant 0.0 : f32\n"
                 "%y = arith.maximumf %s, %c0 : f32\n",
                 lambda torch, y, extras: torch.relu(y + extras[0])),
    "biasgelu": ("%e0 = arith.extf %i1 : {0} to f32\n%s = arith.addf %i0, %e0 : f32\n"
                 "%r = arith.constant 0.70710678 : f32\n%h = arith.constant 0.5 : f32\n%one = arith.constant 1.0 : f32\n"
                 "%sr = arith.mulf %s, %r : f32\n%er = math.erf %sr : f32\n%e1 = arith.addf %er, %one : f32\n"
                 "%sh = arith.mulf %s, %h : f32\n%y = arith.mulf %sh, %e1 : f32\n",
                 lambda torch, y, extras: torch.nn.functional.gelu(y + extras[0])),
    "scale": ("%e0 = arith.extf %i1 : {0} to f32\n%y = arith.mulf %i0, %e0 : f32\n",
              lambda torch, y, extras: y * extras[0]),
    "biasresidual": ("%e0 = arith.extf %i1 : {0} to f32\n%s = arith.addf %i0, %e0 : f32\n"
                     "%e1 = arith.extf %i2 : {0} to f32\n%y = arith.addf %s, %e1 : f32\n",
                     lambda torch, y, extras: y + extras[0] + extras[1]),
}


def in_f32(body):
    """Without extensions of what is f32 already."""
    for to, source in re.findall(r"(%\w+) = arith\.extf (%\w+) : f32 to f32\n", body):
        body = body.replace(f"{to} = arith.extf {source} : f32 to f32\n", "")
        body = re.sub(rf"{to}\b", source, body)
    return body


def gemm(m, n, k, epilogue="none", kind="f16", by_rows=True, batch=0, out=None, schedule=None, tf32=False):
    """schedule: consumers, products, columns, stages, split, group_rows, store_by_tensor, alternate, and perhaps promote,
    streams, late_stores (gemm_kernel.h); None lets the family choose. 8-bit floats have extras in |out|."""
    out = out or kind
    lead, b = ([batch], "b, ") if batch else ([], "")
    other = out if kind in FLOAT8 else kind
    extras = {"none": [], "biasresidual": [([n], other), (lead + [m, n], other)]}.get(epilogue, [([n], other)])
    arguments = [(lead + [m, k], kind), (lead + ([k, n] if by_rows else [n, k]), kind)] + extras + [(lead + [m, n], out)]
    c = memref(lead + [m, n], "f32")
    result = f"%a{len(arguments) - 1}"
    direct = epilogue == "none" and out == "f32"
    sums = result if direct else "%c"
    par = [P] * (len(lead) + 2)
    text = "" if direct else f"%c = memref.alloc() : {c}\n"
    whole = f"({b}i, j) -> ({b}i, j)"
    text += generic([whole], par, [], (sums, c), FILL.format("0.0"))
    bmap = f"({b}i, j, k) -> ({b}{'k, j' if by_rows else 'j, k'})"
    text += generic([f"({b}i, j, k) -> ({b}i, k)", bmap, f"({b}i, j, k) -> ({b}i, j)"], par + [R],
                    [("%a0", memref(*arguments[0])), ("%a1", memref(*arguments[1]))], (sums, c),
                    extended("%x", "%i0", kind) + extended("%w", "%i1", kind) +
                    "%p = arith.mulf %x, %w : f32\n%s = arith.addf %p, %o : f32\nlinalg.yield %s : f32\n",
                    f" attrs = {{o3.schedule = array<i64: {', '.join(map(str, schedule))}>}}" if schedule else "")
    if not direct:
        maps = [whole] + [whole if len(a[0]) > 1 else f"({b}i, j) -> (j)" for a in extras] + [whole]
        value = "%i0" if epilogue == "none" else "%y"
        body = EPILOGUES[epilogue][0].format(other)
        if out != "f32":
            body += f"%t = arith.truncf {value} : f32 to {out}\n"
            value = "%t"
        text += generic(maps, par, [("%c", c)] + [(f"%a{2 + i}", memref(*a)) for i, a in enumerate(extras)],
                        (result, memref(*arguments[-1])), body + f"linalg.yield {value} : {out}\n")
    name = f"gemm_{kind}_{out}_{batch}_{m}x{n}x{k}_{epilogue}_{'nn' if by_rows else 'nt'}"
    if schedule:
        name += "_s" + "_".join(map(str, schedule))

    def reference(torch, a, b, *extra):
        y = a @ (b if by_rows else b.transpose(-1, -2))
        return EPILOGUES[epilogue][1](torch, y, extra)

    if tf32:
        name = name.replace("f32", "tf32")
    marks = ["o3.tf32"] * tf32 + [constants(1)] * (by_rows and not batch)
    text = function(name, arguments, in_f32(text), f" attributes {{{', '.join(marks)}}}" if marks else "")
    return Case(name, text, arguments, reference, TOLERANCES["tf32" if tf32 else kind], "gemm",
                (m, n, k, epilogue, kind, by_rows, batch))


def heads(batch, count, rows, columns, depth, values, kind="f16"):
    """Products of attention on [batch, rows, heads, width], where the batches are two loops with other strides in each
    operand: scores Q K^T -> [batch, heads, rows, columns], or values P V -> [batch, rows, heads, columns]."""
    if values:
        arguments = [([batch, count, rows, depth], kind), ([batch, depth, count, columns], kind),
                     ([batch, rows, count, columns], "f32")]
        maps = ["(b, h, i, j, k) -> (b, h, i, k)", "(b, h, i, j, k) -> (b, k, h, j)", "(b, h, i, j, k) -> (b, i, h, j)"]
    else:
        arguments = [([batch, rows, count, depth], kind), ([batch, columns, count, depth], kind),
                     ([batch, count, rows, columns], "f32")]
        maps = ["(b, h, i, j, k) -> (b, i, h, k)", "(b, h, i, j, k) -> (b, j, h, k)", "(b, h, i, j, k) -> (b, h, i, j)"]
    result = memref(*arguments[2])
    whole = "(b, h, i, j) -> (b, h, i, j)"
    text = generic([whole], [P] * 4, [], ("%a2", result), FILL.format("0.0"))
    text += generic(maps, [P] * 4 + [R], [("%a0", memref(*arguments[0])), ("%a1", memref(*arguments[1]))], ("%a2", result),
                    f"%x = arith.extf %i0 : {kind} to f32\n%w = arith.extf %i1 : {kind} to f32\n"
                    "%p = arith.mulf %x, %w : f32\n%s = arith.addf %p, %o : f32\nlinalg.yield %s : f32\n")
    name = f"heads_{kind}_{batch}_{count}_{rows}x{columns}x{depth}_{'values' if values else 'scores'}"

    def reference(torch, a, b):
        if values:
            return torch.einsum("bhik,bkhj->bihj", a, b)
        return torch.einsum("bihk,bjhk->bhij", a, b)

    return Case(name, function(name, arguments, text), arguments, reference, 1e-5)


# ---- Convolutions ----

@dataclass(frozen=True)
class Conv:
    """Channels last; what has two members is along y, then x. pads: before, then behind. copied: the border is made
    before the kernel and no part of it."""
    size: tuple  # images, height, width
    channels: int
    outputs: int
    taps: tuple = (1, 1)
    steps: tuple = (1, 1)
    pads: tuple = (0, 0, 0, 0)
    dilations: tuple = (1, 1)
    kind: str = "f16"
    residual: bool = False
    copied: bool = False
    depthwise: bool = False
    activation: str = "relu"
    schedule: tuple = None

    def positions(self):
        return tuple((self.size[1 + i] + self.pads[i] + self.pads[2 + i] - (self.taps[i] - 1) * self.dilations[i] - 1) //
                     self.steps[i] + 1 for i in (0, 1))

    def name(self):
        parts = [self.kind, *self.size, self.channels, self.outputs, *self.taps, "s", *self.steps, "p", *self.pads, "d",
                 *self.dilations]
        parts += ["residual"] * self.residual + ["copied"] * self.copied
        parts += [self.activation] * (self.activation != "relu")
        return ("depthwise_" if self.depthwise else "conv_") + "_".join(map(str, parts)) + ("_t" + "_".join(map(str, self.schedule)) if self.schedule else "")


def border(shape, lows, kind, source, sizes, target):
    """As the lowering makes it: each position clamped, and zero where that is another."""
    text = f"%zero = arith.constant 0.0 : {kind}\n"
    for value in sorted({0, 1, *lows, *sizes, *(s - 1 for s in sizes)}):
        text += f"%k{value} = arith.constant {value} : index\n"
    body = "".join(f"%x{i} = linalg.index {i} : index\n" for i in range(4))
    for i in (1, 2):
        low, size = lows[i - 1], sizes[i - 1]
        body += (f"%s{i} = arith.subi %x{i}, %k{low} : index\n%f{i} = arith.cmpi ult, %s{i}, %k{size} : index\n"
                 f"%m{i} = arith.minsi %s{i}, %k{size - 1} : index\n%n{i} = arith.maxsi %m{i}, %k0 : index\n")
    body += (f"%in = arith.andi %f1, %f2 : i1\n%v = memref.load {source[0]}[%x0, %n1, %n2, %x3] : {source[1]}\n"
             f"%y = arith.select %in, %v, %zero : {kind}\nlinalg.yield %y : {kind}\n")
    return text + generic(["(a, b, c, d) -> (a, b, c, d)"], [P] * 4, [], (target, memref(shape, kind)), body)


def conv(c):
    """Sums start at the bias; a residual is added behind them, then ReLU. Weights of tf32 lie by columns."""
    (images, height, width), (oh, ow), kind = c.size, c.positions(), "f32" if c.kind == "tf32" else c.kind
    columns = c.kind == "tf32"
    padded = [images, height + c.pads[0] + c.pads[2], width + c.pads[1] + c.pads[3], c.channels]
    image = padded if c.copied else [images, height, width, c.channels]
    result = [images, oh, ow, c.outputs]
    weights = [*c.taps, c.outputs] if c.depthwise else [*c.taps, c.channels, c.outputs]
    if columns:
        weights = [c.taps[0], c.outputs, c.taps[1], c.channels]
    arguments = [(image, kind), (weights, kind), ([c.outputs], kind)]
    arguments += [(result, kind)] * (2 if c.residual else 1)
    sums = memref(result, "f32")
    text = f"%c = memref.alloc() : {sums}\n"
    source = ("%a0", memref(image, kind))
    if any(c.pads) and not c.copied:
        text += f"%p = memref.alloc() : {memref(padded, kind)}\n"
        text += border(padded, c.pads[:2], kind, source, (height, width), "%p")
        source = ("%p", memref(padded, kind))
    whole = "(n, h, w, m) -> (n, h, w, m)"
    text += generic(["(n, h, w, m) -> (m)", whole], [P] * 4, [("%a2", memref(*arguments[2]))], ("%c", sums),
                    f"%b = arith.extf %i0 : {kind} to f32\nlinalg.yield %b : f32\n")
    loops = "(n, h, w, m, i, j)" if c.depthwise else "(n, h, w, m, i, j, c)"
    channel, taps = ("m", "(i, j, m)") if c.depthwise else ("c", "(i, m, j, c)" if columns else "(i, j, c, m)")
    at = [f"{o} * {s} + {k} * {d}" for o, s, k, d in zip("hw", c.steps, "ij", c.dilations)]
    schedule = f", o3.schedule = array<i64: {', '.join(map(str, c.schedule))}>" if c.schedule else ""
    text += generic([f"{loops} -> (n, {at[0]}, {at[1]}, {channel})", f"{loops} -> {taps}", f"{loops} -> (n, h, w, m)"],
                    [P] * 4 + [R] * (2 if c.depthwise else 3), [source, ("%a1", memref(*arguments[1]))], ("%c", sums),
                    f"%x = arith.extf %i0 : {kind} to f32\n%w = arith.extf %i1 : {kind} to f32\n"
                    "%q = arith.mulf %x, %w : f32\n%s = arith.addf %q, %o : f32\nlinalg.yield %s : f32\n",
                    f' attrs = {{o3.kernel = "conv"{schedule}}}')
    body = "%z = arith.constant 0.0 : f32\n"
    if c.residual:
        body += f"%e = arith.extf %i1 : {kind} to f32\n%s = arith.addf %i0, %e : f32\n"
    value = "%s" if c.residual else "%i0"
    if c.activation == "swish":
        body += (f"%one = arith.constant 1.0 : f32\n%m = arith.negf {value} : f32\n%ex = math.exp %m : f32\n"
                 f"%un = arith.addf %one, %ex : f32\n%r = arith.divf {value}, %un : f32\n")
    else:
        body += f"%r = arith.maximumf {value}, %z : f32\n"
    body += f"linalg.yield %r : f32\n" if kind == "f32" else f"%t = arith.truncf %r : f32 to {kind}\nlinalg.yield %t : {kind}\n"
    inputs = [("%c", sums)] + ([("%a3", memref(*arguments[3]))] if c.residual else [])
    text += generic([whole] * (len(inputs) + 1), [P] * 4, inputs, (f"%a{len(arguments) - 1}", memref(*arguments[-1])), body)

    def reference(torch, x, w, b, *residual):
        x = x.permute(0, 3, 1, 2)
        if not c.copied:
            x = torch.nn.functional.pad(x, (c.pads[1], c.pads[3], c.pads[0], c.pads[2]))
        w = w.permute(1, 3, 0, 2) if columns else w.permute(2, 0, 1)[:, None] if c.depthwise else w.permute(3, 2, 0, 1)
        y = torch.nn.functional.conv2d(x, w, b, c.steps, 0, c.dilations, len(b) if c.depthwise else 1).permute(0, 2, 3, 1)
        y = y + residual[0] if residual else y
        return torch.nn.functional.silu(y) if c.activation == "swish" else torch.relu(y)

    marks = f" attributes {{{constants(1, 2)}{', o3.tf32' if columns else ''}}}"
    return Case(c.name(), function(c.name(), arguments, in_f32(text), marks), arguments, reference, TOLERANCES[c.kind], "conv", (c,))


def depthwise(size, channels, taps, step, pad, more):
    return Conv(size, channels, channels, (taps, taps), (step, step), (pad,) * 4, depthwise=True, **more)


BATCHES = (1, 8, 64)


def resnet50_convs(batch):
    """Those of different sizes, with how many there are of each; the first with its border copied."""
    convs = [(Conv((batch, 224, 224), 8, 64, (7, 7), (2, 2), (3, 3, 3, 3), copied=True), 1)]
    inputs = 64
    for width, size, blocks, step in ((64, 56, 3, 1), (128, 28, 4, 2), (256, 14, 6, 2), (512, 7, 3, 2)):
        before, outputs = size * step, 4 * width
        convs += [(Conv((batch, before, before), inputs, width), 1),
                  (Conv((batch, before, before), width, width, (3, 3), (step, step), (1, 1, 1, 1)), 1),
                  (Conv((batch, size, size), width, outputs, residual=True), blocks),
                  (Conv((batch, before, before), inputs, outputs, steps=(step, step)), 1),
                  (Conv((batch, size, size), outputs, width), blocks - 1),
                  (Conv((batch, size, size), width, width, (3, 3), (1, 1), (1, 1, 1, 1)), blocks - 1)]
        inputs = outputs
    counts = {}
    for c, count in convs:
        counts[c] = counts.get(c, 0) + count
    return list(counts.items())


# ---- Rows ----

GELU = ("%r = arith.constant 0.70710678 : f32\n%h = arith.constant 0.5 : f32\n%one = arith.constant 1.0 : f32\n"
        "%gr = arith.mulf %{0}, %r : f32\n%ge = math.erf %gr : f32\n%g1 = arith.addf %ge, %one : f32\n"
        "%gh = arith.mulf %{0}, %h : f32\n%{1} = arith.mulf %gh, %g1 : f32\n")


def layernorm(rows, columns, gelu=True, kind="f16"):
    whole, row, column = "(i, j) -> (i, j)", "(i, j) -> (i)", "(i, j) -> (j)"
    arguments = [([rows, columns], kind), ([columns], kind), ([columns], kind), ([rows, columns], kind)]
    x, s = memref([rows, columns], kind), memref([rows], "f32")
    g = memref([columns], kind)
    ext = (lambda a, b: f"%{a} = arith.extf %{b} : {kind} to f32\n") if kind != "f32" else (
        lambda a, b: f"%{a} = arith.addf %{b}, %zero : f32\n")
    zero = "%zero = arith.constant 0.0 : f32\n" if kind == "f32" else ""
    text = f"%s0 = memref.alloc() : {s}\n%s1 = memref.alloc() : {s}\n"
    fill = lambda v: generic(["(i) -> (i)"], [P], [], (v, s), FILL.format("0.0"))
    count = f"%n = arith.constant {float(columns)} : f32\n"
    text += fill("%s0")
    text += generic([whole, row], [P, R], [("%a0", x)], ("%s0", s),
                    zero + ext("x", "i0") + "%y = arith.addf %o, %x : f32\nlinalg.yield %y : f32\n")
    text += generic(["(i) -> (i)", "(i) -> (i)"], [P], [("%s0", s)], ("%s0", s),
                    count + "%y = arith.divf %i0, %n : f32\nlinalg.yield %y : f32\n")
    text += fill("%s1")
    text += generic([whole, row, row], [P, R], [("%a0", x), ("%s0", s)], ("%s1", s),
                    zero + ext("x", "i0") + "%d = arith.subf %x, %i1 : f32\n%q = arith.mulf %d, %d : f32\n"
                    "%y = arith.addf %o, %q : f32\nlinalg.yield %y : f32\n")
    text += generic(["(i) -> (i)", "(i) -> (i)"], [P], [("%s1", s)], ("%s1", s),
                    count + "%e = arith.constant 1.0e-5 : f32\n%v = arith.divf %i0, %n : f32\n"
                    "%w = arith.addf %v, %e : f32\n%y = math.sqrt %w : f32\nlinalg.yield %y : f32\n")
    body = (zero + ext("x", "i0") + "%d = arith.subf %x, %i1 : f32\n%q = arith.divf %d, %i2 : f32\n" + ext("g", "i3") +
            "%m = arith.mulf %q, %g : f32\n" + ext("b", "i4") + "%n = arith.addf %m, %b : f32\n")
    body += GELU.format("n", "y") if gelu else ""
    value = "%y" if gelu else "%n"
    if kind != "f32":
        body += f"%t = arith.truncf {value} : f32 to {kind}\n"
        value = "%t"
    text += generic([whole, row, row, column, column, whole], [P, P],
                    [("%a0", x), ("%s0", s), ("%s1", s), ("%a1", g), ("%a2", g)], ("%a3", x),
                    body + f"linalg.yield {value} : {kind}\n")
    name = f"layernorm{'gelu' if gelu else ''}_{kind}_{rows}x{columns}"

    def reference(torch, x, g, b):
        y = torch.nn.functional.layer_norm(x, [columns], g, b, 1e-5)
        return torch.nn.functional.gelu(y) if gelu else y

    marks = f" attributes {{{constants(1, 2)}}}"
    return Case(name, function(name, arguments, text, marks), arguments, reference, 1e-5 if kind == "f32" else 5e-3, "rows",
                (rows, columns, "layernorm", gelu))


INDEX = ("%n{0} = arith.index_cast %i{0} : {1} to index\n%l{0} = arith.cmpi slt, %n{0}, %zero : index\n"
         "%u{0} = arith.addi %n{0}, %count : index\n%s{0} = arith.select %l{0}, %u{0}, %n{0} : index\n"
         "%m{0} = arith.minsi %s{0}, %last : index\n%r{0} = arith.maxsi %m{0}, %zero : index\n")


def embedding(entries, rows, columns, kind="f16", integer="i64"):
    """Two rows of a table and one that comes as it is, added and divided by their root mean square; negative indices count
    from the end."""
    whole, row = "(i, j) -> (i, j)", "(i, j) -> (i)"
    arguments = [([entries, columns], kind), ([rows], integer), ([rows], integer), ([rows, columns], kind),
                 ([rows, columns], kind)]
    table, ids, x = (memref(*a) for a in (arguments[0], arguments[1], arguments[3]))
    w, s = memref([rows, columns], "f32"), memref([rows], "f32")
    text = (f"%all = memref.alloc() : {w}\n%sq = memref.alloc() : {s}\n%zero = arith.constant 0 : index\n"
            f"%count = arith.constant {entries} : index\n%last = arith.constant {entries - 1} : index\n")
    body = "%c = linalg.index 1 : index\n" + INDEX.format(0, integer) + INDEX.format(1, integer)
    for i in (0, 1):
        body += f"%t{i} = memref.load %a0[%r{i}, %c] : {table}\n%e{i} = arith.extf %t{i} : {kind} to f32\n"
    body += (f"%e2 = arith.extf %i2 : {kind} to f32\n%y0 = arith.addf %e0, %e1 : f32\n%y = arith.addf %y0, %e2 : f32\n"
             "linalg.yield %y : f32\n")
    text += generic([row, row, whole, whole], [P, P], [("%a1", ids), ("%a2", ids), ("%a3", x)], ("%all", w), body)
    text += generic(["(i) -> (i)"], [P], [], ("%sq", s), FILL.format("0.0"))
    text += generic([whole, row], [P, R], [("%all", w)], ("%sq", s),
                    "%q = arith.mulf %i0, %i0 : f32\n%y = arith.addf %o, %q : f32\nlinalg.yield %y : f32\n")
    text += generic([whole, row, whole], [P, P], [("%all", w), ("%sq", s)], ("%a4", x),
                    f"%n = arith.constant {float(columns)} : f32\n%v = arith.divf %i1, %n : f32\n%d = math.sqrt %v : f32\n"
                    f"%y = arith.divf %i0, %d : f32\n%t = arith.truncf %y : f32 to {kind}\nlinalg.yield %t : {kind}\n")
    name = f"embedding_{kind}_{integer}_{entries}x{columns}_{rows}"

    def reference(torch, table, first, second, x):
        y = table[first.long() % entries] + table[second.long() % entries] + x
        return y / y.square().mean(-1, keepdim=True).sqrt()

    marks = f" attributes {{{constants(0)}}}"
    return Case(name, function(name, arguments, text, marks), arguments, reference, 5e-3)


def softmax(rows, columns, kind="f16", masked=0):
    """masked: an additive mask of [rows / masked, columns], the same for |masked| rows."""
    arguments = [([rows, columns], kind)] + ([([rows // masked, 1, columns], kind)] if masked else []) + [
        ([rows, columns], kind)]
    if masked:
        arguments[0] = arguments[-1] = ([rows // masked, masked, columns], kind)
    d = "b, i, j" if masked else "i, j"
    rd = d[:-3]
    whole, row, only = f"({d}) -> ({d})", f"({d}) -> ({rd})", f"({rd}) -> ({rd})"
    shape = arguments[0][0]
    x, s, w = memref(shape, kind), memref(shape[:-1], "f32"), memref(shape, "f32")
    result = f"%a{len(arguments) - 1}"
    par = [P] * (len(shape) - 1)
    ext = f"%x = arith.extf %i0 : {kind} to f32\n" if kind != "f32" else "%x = arith.addf %i0, %zz : f32\n"
    if kind == "f32":
        ext = "%zz = arith.constant 0.0 : f32\n" + ext
    text = f"%s0 = memref.alloc() : {s}\n%s1 = memref.alloc() : {s}\n%w = memref.alloc() : {w}\n"
    source, read = "%a0", x
    if masked:
        mask = memref(arguments[1][0], kind)
        text += f"%m = memref.alloc() : {w}\n" + generic(
            [whole, f"({d}) -> (b, 0, j)", whole], par + [P], [("%a0", x), ("%a1", mask)], ("%m", w),
            f"%x = arith.extf %i0 : {kind} to f32\n%k = arith.extf %i1 : {kind} to f32\n%y = arith.addf %x, %k : f32\n"
            "linalg.yield %y : f32\n")
        source, read = "%m", w
        ext = "%zz = arith.constant 0.0 : f32\n%x = arith.addf %i0, %zz : f32\n"
    text += generic([only], par, [], ("%s0", s), FILL.format("0xFF800000"))
    text += generic([whole, row], par + [R], [(source, read)], ("%s0", s),
                    ext + "%y = arith.maximumf %x, %o : f32\nlinalg.yield %y : f32\n")
    text += generic([whole, row, whole], par + [P], [(source, read), ("%s0", s)], ("%w", w),
                    ext + "%d = arith.subf %x, %i1 : f32\n%y = math.exp %d : f32\nlinalg.yield %y : f32\n")
    text += generic([only], par, [], ("%s1", s), FILL.format("0.0"))
    text += generic([whole, row], par + [R], [("%w", w)], ("%s1", s),
                    "%y = arith.addf %o, %i0 : f32\nlinalg.yield %y : f32\n")
    cut = f"%t = arith.truncf %y : f32 to {kind}\n" if kind != "f32" else ""
    text += generic([whole, row, whole], par + [P], [("%w", w), ("%s1", s)], (result, x),
                    f"%y = arith.divf %i0, %i1 : f32\n{cut}linalg.yield {'%t' if cut else '%y'} : {kind}\n")
    name = f"softmax{'masked' if masked else ''}_{kind}_{rows}x{columns}"

    def reference(torch, x, *mask):
        return torch.softmax(x + mask[0] if mask else x, -1)

    return Case(name, function(name, arguments, text), arguments, reference, 1e-5 if kind == "f32" else 5e-3, "rows",
                (rows, columns, "softmax", False))


# ---- Attention ----

def attention(batch, heads, kv_heads, rows, columns, width, causal=False, masked=False, kind="f16", schedule=None, values=None, warps=None):
    """values: their width, when it is not that of queries and keys; warps: the members of o3_attention_warps_t; schedule: the members of o3_attention_schedule_t in order; None lets the family choose."""
    value_width = values or width
    arguments = [([batch, heads, rows, width], kind), ([batch, kv_heads, columns, width], kind),
                 ([batch, kv_heads, columns, value_width], kind)] + ([([batch, columns], kind)] if masked else [])
    arguments.append(([batch, heads, rows, value_width], kind))
    name = (f"attention_{kind}_{batch}_{heads}_{kv_heads}_{rows}x{columns}x{width}{f'x{values}' if values else ''}"
            f"{'_causal' if causal else ''}{'_masked' if masked else ''}")
    if schedule:
        name += "_s" + "_".join(map(str, schedule))
    if warps:
        name += "_w" + "_".join(map(str, warps))

    def reference(torch, q, k, v, *mask):
        k, v = k.repeat_interleave(heads // kv_heads, 1), v.repeat_interleave(heads // kv_heads, 1)
        scores = q @ k.transpose(-1, -2) * width**-0.5
        if masked:
            scores = scores + mask[0][:, None, None]
        if causal:
            above = torch.ones(rows, columns, device=q.device).triu(1).bool()
            scores = scores.masked_fill(above, float("-inf"))
        return scores.softmax(-1) @ v

    chosen = f", o3.schedule = array<i64: {', '.join(map(str, schedule))}>" if schedule else ""
    if warps:
        chosen += f", o3.warps = array<i64: {', '.join(map(str, warps))}>"
    text = function(name, arguments, "", f" attributes {{o3.attention = array<i64: {int(causal)}, {int(masked)}>{chosen}}}")
    return Case(name, text, arguments, reference, 3e-3 if kind == "f16" else 1e-2, "attention",
                (batch, heads, rows, width, causal))


# ---- Tables ----

# Products of BERT-base (sequence 128) and of ResNet-50 as products over pixels, at several batch sizes: m, n, k.
NETWORK_PRODUCTS = [
    (128, 768, 768), (128, 2304, 768), (128, 3072, 768), (128, 768, 3072),
    (1024, 768, 768), (1024, 3072, 768), (1024, 768, 3072),
    (4096, 768, 768), (4096, 3072, 768), (4096, 768, 3072),
    (8192, 768, 768), (8192, 3072, 768),
    (3136, 64, 64), (3136, 256, 64), (784, 512, 128), (196, 1024, 256), (49, 2048, 512),
    (25088, 64, 256), (6272, 128, 512), (12544, 256, 1024),
]


def checked():
    """Awkward sizes: each is compared with float64."""
    cases = [gemm(m, n, k, e, kind, rows, batch, out) for m, n, k, e, kind, rows, batch, out in [
        (1, 8, 8, "none", "f16", True, 0, None), (63, 64, 72, "bias", "f16", False, 0, None),
        (64, 64, 64, "none", "f16", True, 0, "f32"), (65, 136, 1000, "biasrelu", "bf16", True, 0, None),
        (77, 72, 2048, "biasresidual", "f16", False, 0, None), (128, 768, 3072, "biasgelu", "f16", True, 0, None),
        (128, 768, 3072, "biasrelu", "f16", False, 0, "f32"), (997, 1000, 40, "bias", "f16", True, 0, None),
        (2048, 4096, 512, "biasgelu", "f16", False, 0, None), (2040, 4088, 520, "biasresidual", "bf16", True, 0, None),
        (300, 264, 200, "none", "f16", True, 5, None), (128, 128, 64, "none", "f16", False, 24, None),
        (128, 64, 128, "none", "f16", True, 24, None), (1, 1000, 2048, "bias", "f16", True, 0, None),
        (64, 1000, 2048, "bias", "f16", False, 0, None), (4096, 4096, 256, "none", "bf16", True, 0, None)]]
    square, wide = (2, 2, 128, 6, 1, 8, 1, 1), (2, 2, 192, 4, 1, 8, 1, 1)
    cases += [gemm(1000, 264, 200, "biasresidual", batch=3, schedule=square), gemm(5000, 1000, 40, schedule=square),
              gemm(2040, 4088, 520, "biasgelu", "bf16", by_rows=False, schedule=wide),
              gemm(700, 1096, 392, "bias", batch=2, out="f32", schedule=(2, 2, 128, 6, 1, 8, 0, 1))]
    cases += [gemm(m, n, k, e, kind, False, schedule=(*tile, 0, streams)) for m, n, k, e, kind, tile, streams in [
        (300, 520, 1000, "biasgelu", "f16", (2, 1, 256, 4, 1, 8, 1, 0), 132), (129, 72, 5000, "biasresidual", "bf16", (1, 1, 64, 6, 1, 8, 0, 0), 77)]]
    cases += [gemm(m, n, k, e, kind, rows, batch, schedule=(consumers, 1, columns, stages, 1, 8, 1, 0, 0, 0, 1))
              for m, n, k, e, kind, rows, batch, consumers, columns, stages in [
                  (4040, 4088, 520, "biasresidual", "f16", True, 0, 2, 256, 4), (5000, 1000, 264, "biasgelu", "bf16", False, 0, 2, 192, 3),
                  (300, 264, 200, "none", "f16", True, 50, 2, 128, 2), (20000, 72, 392, "bias", "f16", False, 0, 1, 64, 8)]]
    cases += [gemm(m, n, k, e, kind, rows, batch, out) for m, n, k, e, kind, rows, batch, out in [
        (1, 1000, 2048, "bias", "f16", False, 0, None), (1, 1001, 2049, "bias", "f32", True, 0, None),
        (1, 1001, 2049, "none", "f32", False, 0, None), (7, 77, 130, "biasresidual", "bf16", True, 0, None),
        (8, 768, 768, "biasgelu", "f16", False, 0, None), (3, 4096, 1024, "biasrelu", "f16", True, 0, "f32"),
        (2, 72, 40, "none", "f16", True, 5, None), (5, 33, 17, "none", "f16", False, 3, None),
        (1, 1, 1, "none", "f32", True, 0, None), (4, 2, 5000, "none", "bf16", False, 0, None),
        (8, 11008, 256, "biasrelu", "f32", True, 0, None)]]
    cases += [gemm(m, n, k, e, "f32", False, batch, tf32=True) for m, n, k, e, batch in [
        (65, 136, 1000, "biasrelu", 0), (300, 264, 200, "none", 5), (128, 768, 3072, "biasresidual", 0), (9, 8, 8, "none", 0)]]
    cases += [gemm(m, n, k, e, kind, False, 0, out, schedule) for m, n, k, e, kind, out, schedule in [
        (1, 8, 16, "none", "e4m3", "f16", None), (300, 264, 208, "scale", "e4m3", "f16", None),
        (65, 136, 1008, "scale", "e5m2", "f16", None), (700, 1096, 400, "bias", "e5m2", "f32", None),
        (2040, 4088, 528, "biasresidual", "e4m3", "f16", None), (700, 1096, 4000, "bias", "e4m3", "f16", (2, 1, 256, 4, 1, 8, 1, 0, 2)),
        (997, 1000, 1040, "biasrelu", "e4m3", "f16", (2, 1, 192, 4, 1, 8, 1, 0, 1)),
        (1000, 264, 208, "none", "e4m3", "f16", square)]]
    around = (1, 1, 1, 1)
    cases += [conv(c) for c in [
        Conv((2, 13, 11), 40, 72, (3, 3), (1, 1), around), Conv((3, 9, 14), 64, 128, (3, 3), (2, 2), around),
        Conv((2, 15, 10), 72, 64, (1, 1), (2, 2)), Conv((1, 56, 56), 64, 64, (3, 3), (1, 1), around, residual=True),
        Conv((1, 7, 7), 512, 512, (3, 3), (1, 1), around), Conv((2, 12, 17), 48, 24, (5, 3), (2, 1), (1, 2, 3, 0), (2, 1)),
        Conv((2, 21, 30), 8, 64, (7, 7), (2, 2), (3, 3, 3, 3), copied=True),
        Conv((2, 21, 30), 16, 40, (3, 3), (1, 1), around, copied=True),
        Conv((1, 10, 10), 16, 32, (3, 3), (1, 1), around, kind="bf16"), Conv((1, 2, 1), 64, 64, (3, 3), (1, 1), around),
        Conv((5, 1, 33), 64, 8, (1, 5), (1, 3), (0, 2, 0, 2)), Conv((1, 40, 1), 24, 64, (3, 1), (1, 1), (1, 0, 1, 0)),
        Conv((1, 20, 20), 64, 64, (3, 3), (1, 1), around, schedule=(1, 1, 64, 3, 2, 8, 0, 0)),
        Conv((1, 20, 20), 64, 64, (3, 3), (1, 1), around, schedule=(1, 1, 64, 2, 4, 8, 0, 0)),
        Conv((9, 29, 34), 64, 328, (3, 3), (2, 2), around, schedule=square),
        Conv((4, 28, 28), 128, 256, (3, 3), (1, 1), around, kind="bf16", residual=True),
        Conv((3, 8, 8), 256, 64, residual=True)]]
    cases += [conv(c) for c in [
        Conv((2, 13, 11), 40, 72, (3, 3), (1, 1), around, kind="tf32"), Conv((3, 9, 14), 64, 128, (3, 3), (2, 2), around, kind="tf32"),
        Conv((2, 12, 17), 48, 24, (5, 3), (2, 1), (1, 2, 3, 0), (2, 1), kind="tf32"),
        Conv((2, 21, 30), 8, 64, (7, 7), (2, 2), (3, 3, 3, 3), copied=True, kind="tf32"),
        Conv((1, 20, 20), 64, 64, (3, 3), (1, 1), around, schedule=(1, 1, 64, 3, 2, 8, 0, 0), kind="tf32"),
        Conv((3, 56, 56), 64, 256, residual=True, kind="tf32")]]
    cases += [conv(depthwise(*c)) for c in [
        ((2, 13, 11), 40, 3, 1, 1, {"residual": True}), ((1, 112, 112), 96, 3, 2, 1, {}),
        ((3, 14, 14), 384, 3, 1, 1, {"kind": "bf16"}), ((1, 7, 7), 960, 3, 1, 1, {"activation": "swish"}),
        ((2, 17, 23), 24, 5, 2, 2, {}), ((5, 9, 64), 8, 5, 1, 2, {"schedule": (8,)}),
        ((1, 6, 5), 16, 3, 1, 2, {"dilations": (2, 2)}), ((1, 1, 1), 64, 3, 1, 1, {}),
        ((2, 20, 19), 32, 3, 1, 0, {"schedule": (4,)})]]
    cases += [heads(2, 12, 128, 128, 64, False), heads(2, 12, 128, 64, 128, True), heads(3, 5, 70, 72, 40, False),
              heads(1, 3, 97, 56, 104, True)]
    cases += [layernorm(r, c, g, kind) for r, c, g, kind in [
        (1, 768, True, "f16"), (37, 768, False, "f16"), (1000, 1000, True, "f16"), (129, 1024, False, "f32"),
        (2048, 4096, True, "bf16"), (13, 77, False, "f16"), (5000, 96, True, "f16"), (100, 8192, False, "f16")]]
    cases += [embedding(7, 13, 72), embedding(1000, 333, 768, "bf16", "i32")]
    cases += [softmax(r, c, kind, m) for r, c, kind, m in [
        (1, 1, "f16", 0), (256, 1024, "f16", 0), (1536, 128, "f16", 128), (333, 1000, "f32", 0), (64, 4096, "bf16", 0),
        (7, 31, "f16", 0), (3000, 197, "f16", 0), (40009, 49, "f16", 0), (4099, 49, "f16", 0), (9001, 64, "bf16", 0), (2503, 9, "f32", 0)]]
    cases += [attention(*sizes) for sizes in [
        (2, 4, 4, 256, 256, 128), (1, 2, 2, 300, 333, 64), (2, 4, 2, 512, 512, 128, True),
        (2, 12, 12, 128, 128, 64, False, True), (1, 1, 1, 1, 1, 64), (1, 3, 1, 200, 1000, 128, False, False, "bf16"),
        (1, 2, 2, 1000, 1000, 64, True), (3, 2, 2, 130, 640, 128, False, True)]]
    cases += [attention(2, 4, 2, 130, 640, 80), attention(1, 2, 2, 257, 257, 96, True), attention(2, 2, 2, 300, 131, 256),
              attention(2, 3, 3, 200, 200, 16, True), attention(1, 2, 2, 257, 257, 192, True, values=128),
              attention(1, 2, 1, 100, 130, 200, False, True, "bf16")]
    cases += [attention(2, 8, 2, 1, 1000, 128, warps=(1, 16, 32, 4, 2, 4, 1)), attention(1, 2, 2, 33, 50, 6, warps=(4, 32, 64, 1, 2, 1, 1)),
              attention(2, 2, 1, 200, 333, 72, False, True, "bf16", warps=(4, 16, 64, 1, 2, 1, 1)),
              attention(1, 2, 2, 257, 257, 128, True, warps=(4, 32, 32, 1, 2, 1, 1)),
              attention(1, 2, 2, 65, 70, 7, values=9, warps=(4, 32, 64, 1, 1, 1, 1))]
    return cases


def rounding(case):
    """One of f32 that may round its factors to tf32."""
    name = case.name.replace("f32", "tf32")
    head, body = case.text.replace(f"@{case.name}(", f"@{name}(").split("\n", 1)
    marked = head.replace("attributes {", "attributes {o3.tf32, ") if "attributes {" in head else head[:-1] + "attributes {o3.tf32} {"
    return replace(case, name=name, text=f"{marked}\n{body}", tolerance=TOLERANCES["tf32"])


WARP_CARDS = ("ampere", "turing", "volta")


def checked_on(card):
    """Those of a card whose warps multiply: products and convolutions of what it multiplies, of awkward sizes."""
    brain = "bf16" if card == "ampere" else "f16"
    around = (1, 1, 1, 1)
    cases = [gemm(*sizes) for sizes in [
        (1, 8, 8, "none", "f16"), (63, 64, 72, "bias", "f16", False), (65, 136, 1000, "biasrelu", brain),
        (77, 72, 2048, "biasresidual", "f16", False), (997, 1000, 40, "bias", "f16"), (300, 264, 200, "none", "f16", True, 5),
        (131, 77, 93, "biasrelu", "f16", False), (67, 131, 257, "biasresidual", brain), (50, 102, 1030, "bias", "f16"),
        (2040, 1032, 520, "biasresidual", brain), (128, 768, 3072, "biasgelu", "f16"), (128, 768, 320, "biasrelu", "f16", False, 0, "f32"),
        (63, 64, 72, "bias", "f32", False), (131, 77, 93, "biasrelu", "f32", False), (67, 131, 257, "biasresidual", "f32"),
        (1000, 520, 136, "bias", "f32")]]
    for kind in ("f16", "f32"):
        cases += [conv(c) for c in [
            Conv((2, 13, 11), 40, 72, (3, 3), (1, 1), around, kind=kind), Conv((3, 9, 14), 64, 128, (3, 3), (2, 2), around, kind=kind),
            Conv((2, 12, 17), 48, 24, (5, 3), (2, 1), (1, 2, 3, 0), (2, 1), kind=kind, residual=True),
            Conv((2, 21, 30), 8, 64, (7, 7), (2, 2), (3, 3, 3, 3), copied=True, kind=kind),
            Conv((2, 9, 9), 3, 17, (3, 3), (2, 2), around, kind=kind), Conv((2, 15, 10), 72, 64, (1, 1), (2, 2), kind=kind)]]
        cases += [conv(depthwise(*c, {"kind": kind})) for c in [
            ((2, 13, 11), 40, 3, 1, 1), ((2, 17, 23), 24, 5, 2, 2), ((1, 7, 7), 960, 3, 1, 1)]]
    cases += [attention(*sizes, kind=brain) for sizes in [
        (1, 2, 2, 300, 333, 64), (2, 3, 3, 200, 200, 16, True), (1, 2, 1, 200, 150, 72, False, True), (1, 2, 2, 33, 50, 6),
        (2, 8, 2, 1, 1000, 128), (1, 2, 2, 257, 257, 128, True)]]
    if card == "ampere":
        cases += [gemm(m, n, k, e, "f32", rows, batch, tf32=True) for m, n, k, e, rows, batch in [
            (65, 136, 1000, "biasrelu", False, 0), (65, 136, 1000, "biasrelu", True, 0), (300, 264, 200, "none", True, 5),
            (67, 131, 257, "biasresidual", True, 0), (131, 77, 93, "bias", False, 0), (1000, 520, 136, "bias", True, 0)]]
        cases += [rounding(conv(Conv((2, 13, 11), 40, 72, (3, 3), (1, 1), around, kind="f32"))),
                  rounding(conv(Conv((2, 9, 9), 3, 17, (3, 3), (2, 2), around, kind="f32")))]
    return list({case.name: case for case in cases}.values())


def timed():
    cases = [gemm(4096, 4096, 4096), gemm(8192, 8192, 8192), gemm(8192, 4096, 4096),
             gemm(4096, 4096, 4096, by_rows=False), gemm(8192, 8192, 8192, by_rows=False),
             gemm(4096, 4096, 4096, "biasgelu", by_rows=False), gemm(8192, 8192, 8192, "biasgelu", by_rows=False),
             gemm(128, 3072, 768, by_rows=False), gemm(2048, 4096, 1024, by_rows=True),
             gemm(8192, 4096, 1024, by_rows=True), gemm(16384, 1024, 4096, by_rows=True)]
    cases += [gemm(m, n, k, by_rows=True) for m, n, k in NETWORK_PRODUCTS]
    cases += [conv(c) for batch in BATCHES for c, _ in resnet50_convs(batch)]
    cases += [layernorm(65536, 1024), layernorm(16384, 4096), softmax(65536, 1024), softmax(16384, 4096),
              layernorm(128, 768), layernorm(2048, 1024), layernorm(8192, 1024)]
    cases += [attention(max(1, 16384 // rows), 2048 // width, 2048 // width, rows, rows, width, causal)
              for width in (64, 128) for rows in (1024, 2048, 4096, 8192, 16384, 32768) for causal in (False, True)]
    cases += [attention(4, 2048 // width, 2048 // width, 4096, 4096, width, causal)
              for width in (16, 32, 48, 80, 96, 160, 192, 256) for causal in (False, True)]
    return cases


# Products of few tiles and long k: rows, columns, k, and how many blocks have a tile of 64 x 64 where they are to fill the card.
LONG_PRODUCTS = [(64, 64, 65536, 32), (128, 128, 65536, 32), (256, 256, 16384, 8), (64, 1024, 16384, 8), (512, 512, 4096, 2),
                 (512, 512, 8192, 2), (512, 512, 16384, 2), (1024, 256, 8192, 2)]


def long_product(m, n, k, blocks):
    """As the family chooses; tiles of 64 x 64 whose k is shared by a cluster of at most 8 blocks; and by as many through memory."""
    tile, streams = (1, 1, 64, 12), m // 64 * (n // 64) * blocks
    return {"ours": gemm(m, n, k), "clusters": gemm(m, n, k, schedule=(*tile, min(blocks, 8), 8, 0, 0)),
            "streams": gemm(m, n, k, schedule=(*tile, 1, 8, 0, 0, 0, streams))}


def long_products():
    return [long_product(*sizes) for sizes in LONG_PRODUCTS]


def all_cases():
    long = [case for ways in long_products() for case in ways.values()]
    return list({case.name: case for case in checked() + timed() + long}.values())


if __name__ == "__main__":
    card = next((c for c in WARP_CARDS if f"--{c}" in sys.argv), None)
    chosen = checked_on(card) if card else checked() if "--checked" in sys.argv else all_cases()
    print("module {\n" + "".join(case.text for case in chosen) + "}")
