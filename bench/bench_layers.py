"""How fast each convolution and each product of a network is, from `o3-run --profile --json` on the feeds.

A kernel may hold several layers, and a layer may need several kernels (a copy with a border, transforms): layers that
share a kernel are one row, and a row's time is that of all kernels of its layers. The operations of a row are those
of the layers as the model file has them, whatever the code does. So an algorithm that saves multiplications can be
above what the machine reaches.

What bounds a row is told by a roofline of figures that are measured in the same run, the largest of

    arithmetic  multiply-adds of taps inside the image, of outputs rounded up to 8 lanes, or those of the Winograd
                products, and what else is computed of the results, at the peak
    L2 ...      the kernels' operands and results, each moved once, at the rate of a copy in the first cache that has it
                (bench_traffic.py); a cache holds half of its size, of which its rate was measured, beside what others
                use

as if a machine did both at the same time. A layer is bound by arithmetic, and has to come near the peak, where that is
the larger.
"""

import json
import os
import statistics
import subprocess
import typing

import numpy as np
import onnx
import onnxruntime

import bench_traffic
from bench_networks import BUILD

LANES = 8
BAR = 0.8  # of the peak or of the bound, for what arithmetic bounds
PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm")


def label(node, index):
    """The name that o3c gives it."""
    return node.name or f"{node.op_type}#{index}"


def shapes_of(model, feeds):
    """Sizes of what the layers read and write, by name: inferred ones have gaps, so they are those of a run."""
    wanted = {name for node in model.graph.node if node.op_type in PRODUCTS for name in (*node.input[:2], node.output[0])}
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    shapes.update({name: list(value.shape) for name, value in feeds.items()})
    names = sorted(wanted - set(shapes))
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, ["CPUExecutionProvider"])
    shapes.update({name: list(value.shape) for name, value in zip(names, session.run(names, feeds))})
    return shapes


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


class Layer(typing.NamedTuple):
    text: str
    operations: int
    needed: float  # operations on what there is, with all lanes of the results' last vector


def taps_inside(size, window, stride, dilation, low, outputs):
    """Of an axis, the share of the taps of all windows that read the image and not its border."""
    places = (output * stride + tap * dilation - low for output in range(outputs) for tap in range(window))
    return sum(0 <= place < size for place in places) / (outputs * window)


def lows(attrs, x, w, y, strides, dilations):
    """The border before each axis."""
    kind = attrs.get("auto_pad", b"NOTSET").decode()
    if kind == "NOTSET":
        return attrs.get("pads", [0] * 2 * len(strides))[:len(strides)]
    reach = [(n - 1) * stride + (k - 1) * dilation + 1 for n, k, stride, dilation in zip(y[2:], w[2:], strides, dilations)]
    border = [max(end - size, 0) if kind.startswith("SAME") else 0 for end, size in zip(reach, x[2:])]
    return [both // 2 if kind == "SAME_UPPER" else both - both // 2 for both in border]


def share_inside(attrs, x, w, y):
    axes = len(x) - 2
    strides, dilations = attrs.get("strides", [1] * axes), attrs.get("dilations", [1] * axes)
    share = 1.0
    for axis, low in enumerate(lows(attrs, x, w, y, strides, dilations)):
        share *= taps_inside(x[2 + axis], w[2 + axis], strides[axis], dilations[axis], low, y[2 + axis])
    return share


def describe(node, shapes):
    x, w, y = (shapes[name] for name in (*node.input[:2], node.output[0]))
    attrs = {attr.name: onnx.helper.get_attribute_value(attr) for attr in node.attribute}
    text = f"{node.op_type} " + "x".join(map(str, x)) + " * " + "x".join(map(str, w))
    operations = 2 * count(y) * (x[0] if attrs.get("transA") else x[-1])
    outputs, share = y[-1], 1.0
    if node.op_type in ("Conv", "ConvTranspose"):
        stride, group = max(attrs.get("strides", [1])), attrs.get("group", 1)
        text += f" /{stride}" * (stride > 1) + f" in {group} groups" * (group > 1)
        operations, outputs = 2 * count(y if node.op_type == "Conv" else x) * count(w[1:]), y[1]
        if node.op_type == "Conv":
            share = share_inside(attrs, x, w, y)
        else:
            outputs *= stride * stride  # phases may be lanes
    lanes = -(-outputs // LANES) * LANES / outputs
    return Layer(text, operations, operations * share * lanes)


def profile(library, inputs, threads):
    command = [os.path.join(BUILD, "bin", "o3-run"), library, "-i", inputs, "--profile", "--json", f"-j{threads}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"compare_cpu: {' '.join(command)}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)["sets"][0]["profile"]


def groups(kernels, layers, traffic, levels):
    """Sets of layers that share kernels, each with the sums of its kernels' (ms, operations, bytes from each cache and memory)."""
    found = []
    for kernel in kernels:
        inside = {node for node in kernel["nodes"] if node in layers}
        if inside:
            touching = [group for group in found if group[0] & inside]
            found = [group for group in found if not group[0] & inside]
            # Single ops, which are no calls in the plan: no slower than from the first cache.
            moved = traffic.get(kernel["name"], [kernel["bytes"]] + [0] * (levels - 1))
            parts = [(kernel["ms"], kernel["operations"], *moved), *(group[1] for group in touching)]
            found.append((inside.union(*(group[0] for group in touching)), [sum(column) for column in zip(*parts)]))
    return found


class Roofline:
    """The machine with as many threads."""

    def __init__(self, measured):
        self.peak = measured["peak_gflops"]
        self.sizes = [cache["bytes"] // 2 for cache in measured["caches"]]
        self.levels = [(cache["copy_gbytes"], f"L{cache['level']}") for cache in measured["caches"]]
        self.levels.append((measured["copy_gbytes"], "memory"))

    def text(self, threads):
        rates = ", ".join(f"{rate:.1f} GB/s {name}" for rate, name in self.levels)
        return f"{threads} thread{'s' * (threads > 1)}: {self.peak:.1f} GFLOP/s, {rates}"

    def bound(self, layers, operations, moved):
        """(ms at least, by what) of kernels that hold |layers|, with their |operations| and the bytes |moved| from each level."""
        products = sum(layer.operations for layer in layers)
        needed = sum(layer.needed for layer in layers)
        computed = min(needed, operations) if operations < products else needed + operations - products
        times = [(size / rate * 1e-6, name) for size, (rate, name) in zip(moved, self.levels)]
        return max((computed / self.peak * 1e-6, "arithmetic"), (sum(ms for ms, _ in times), max(times)[1]))


class Cell(typing.NamedTuple):
    ms: float
    rate: float       # GFLOP/s of the model's operations
    of_peak: float
    bound_ms: float
    bound: str        # by what


class Row(typing.NamedTuple):
    network: str
    text: str
    times: int
    operations: int
    cells: list       # for each number of threads


def cell_of(kind, found, roofline):
    """The median of equal ones."""
    ms, operations, *moved = (statistics.median(column) for column in zip(*found))
    rate = sum(layer.operations for layer in kind) / ms * 1e-6 if ms else 0
    return Cell(ms, rate, rate / roofline.peak, *roofline.bound(kind, operations, moved))


def rows_of(name, model, feeds, library, plan, thread_counts):
    """(rows in the order of the network, a Roofline for each number of threads); equal layers are one row. |plan|: see
    bench_traffic.plan_of."""
    shapes = shapes_of(model, feeds)
    layers = {label(node, index): describe(node, shapes) for index, node in enumerate(model.graph.node)
              if node.op_type in PRODUCTS}
    touches = bench_traffic.touches(plan)
    inputs = f"{library}.npz"
    np.savez(inputs, **feeds)
    found, rooflines, seen = {}, [], set()
    for threads in thread_counts:
        measured = profile(library, inputs, threads)
        rooflines.append(Roofline(measured))
        traffic = bench_traffic.served(touches, rooflines[-1].sizes)
        for members, sums in groups(measured["kernels"], layers, traffic, len(rooflines[-1].levels)):
            kind = tuple(layers[layer] for layer in layers if layer in members)
            found.setdefault(kind, {}).setdefault(threads, []).append(sums)
            seen |= members
    for layer in sorted(set(layers) - seen):
        print(f"{name}: layer '{layer}' is in no row: no kernel has it")
    rows = []
    for kind, by_threads in found.items():
        cells = [cell_of(kind, by_threads[threads], roofline) for threads, roofline in zip(thread_counts, rooflines)]
        rows.append(Row(name, " and ".join(layer.text for layer in kind), len(by_threads[thread_counts[0]]),
                        sum(layer.operations for layer in kind), cells))
    return rows, rooflines


def of_bound(cell):
    return cell.bound_ms / cell.ms if cell.ms else 0


def table(rows, thread_counts):
    heads = "".join(f" ms, {threads} thread{'s' * (threads > 1)} | GFLOP/s | of peak | of its bound |" for threads in thread_counts)
    lines = [f"| network | layer | times | MFLOP |{heads}", "|-|-|-:|-:|" + "-:|-:|-:|-:|" * len(thread_counts)]
    for row in rows:
        numbers = "".join(f" {cell.ms:.3g} | {cell.rate:.1f} | {cell.of_peak * 100:.0f} % | {of_bound(cell) * 100:.0f} %, "
                          f"{cell.bound} |" for cell in row.cells)
        lines.append(f"| {row.network} | {row.text} | {row.times} | {row.operations * 1e-6:.4g} |{numbers}")
    return "\n".join(lines)


def below_bar(rows, thread_counts):
    """How many layers arithmetic bounds, and those that come near neither the peak nor their bound: Winograd layers
    are above the one, and those that pad their channels below it."""
    lines = []
    for index, threads in enumerate(thread_counts):
        bounded = [row for row in rows if row.cells[index].bound == "arithmetic"]
        below = [row for row in bounded if max(row.cells[index].of_peak, of_bound(row.cells[index])) < BAR]
        lines.append(f"{threads} thread{'s' * (threads > 1)}: arithmetic bounds {sum(row.times for row in bounded)} layers; "
                     f"{sum(row.times for row in below)} stay below {BAR * 100:.0f} % of the peak and of that bound"
                     + ("." if not below else ": " + ", ".join(
                         f"{row.network} {row.text} ({of_bound(row.cells[index]) * 100:.0f} %)" for row in below) + "."))
    return "\n\n".join(lines)
