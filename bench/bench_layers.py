"""How fast each convolution and each product of a network is, from `o3-run --profile --json` on the feeds.

A kernel may hold several layers, and a layer may need several kernels (a copy with a border, transforms): layers that
share a kernel are one row, and a row's time is that of all kernels of its layers. The operations of a row are those
of the layers as the model file has them, whatever the code does. So an algorithm that saves multiplications can be
above what the machine reaches. A layer that makes fewer operations with each byte than the machine does while it copies
one from memory is bound by memory: its bytes are those of its operands and its result, each moved once.
"""

import json
import os
import statistics
import subprocess

import numpy as np
import onnx
import onnxruntime

from bench_networks import BUILD

FLOAT_BYTES = 4
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


def describe(node, shapes):
    """(text, operations, bytes) of a layer."""
    x, w, y = (shapes[name] for name in (*node.input[:2], node.output[0]))
    moved = FLOAT_BYTES * (count(x) + count(w) + count(y))
    attrs = {attr.name: onnx.helper.get_attribute_value(attr) for attr in node.attribute}
    text = f"{node.op_type} " + "x".join(map(str, x)) + " * " + "x".join(map(str, w))
    if node.op_type in ("Conv", "ConvTranspose"):
        stride, group = max(attrs.get("strides", [1])), attrs.get("group", 1)
        text += f" /{stride}" * (stride > 1) + f" in {group} groups" * (group > 1)
        return text, 2 * count(y if node.op_type == "Conv" else x) * count(w[1:]), moved
    return text, 2 * count(y) * (x[0] if attrs.get("transA") else x[-1]), moved


def profile(library, inputs, threads):
    command = [os.path.join(BUILD, "bin", "o3-run"), library, "-i", inputs, "--profile", "--json", f"-j{threads}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"compare_cpu: {' '.join(command)}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)["sets"][0]["profile"]


def groups(kernels, layers):
    """Sets of layers that share kernels, each with its time in ms."""
    found = []
    for kernel in kernels:
        inside = {node for node in kernel["nodes"] if node in layers}
        if inside:
            touching = [group for group in found if group[0] & inside]
            found = [group for group in found if not group[0] & inside]
            found.append((inside.union(*(group[0] for group in touching)), kernel["ms"] + sum(group[1] for group in touching)))
    return found


def rows_of(name, model, feeds, library, thread_counts):
    """[(network, layer, how often, operations, [(ms, GFLOP/s, of peak, of memory or None) for each number of threads])],
    in the order of the network; equal layers are one row, with the median of their times."""
    shapes = shapes_of(model, feeds)
    layers = {label(node, index): describe(node, shapes) for index, node in enumerate(model.graph.node)
              if node.op_type in PRODUCTS}
    inputs = f"{library}.npz"
    np.savez(inputs, **feeds)
    times, peaks, seen = {}, [], set()
    for threads in thread_counts:
        measured = profile(library, inputs, threads)
        peaks.append((measured["peak_gflops"], measured["copy_gbytes"]))
        for members, ms in groups(measured["kernels"], layers):
            ordered = [layers[layer] for layer in layers if layer in members]
            key = (" and ".join(text for text, _, _ in ordered), sum(operations for _, operations, _ in ordered),
                   sum(moved for _, _, moved in ordered))
            times.setdefault(key, {}).setdefault(threads, []).append(ms)
            seen |= members
    for layer in sorted(set(layers) - seen):
        print(f"{name}: layer '{layer}' is in no row: no kernel has it")
    rows = []
    for (text, operations, moved), by_threads in times.items():
        cells = []
        for threads, (peak, copied) in zip(thread_counts, peaks):
            ms = statistics.median(by_threads[threads])
            rate = operations / ms * 1e-6 if ms else 0
            bound = operations * copied < moved * peak
            cells.append((ms, rate, rate / peak, moved / ms * 1e-6 / copied if bound and ms else None))
        rows.append((name, text, len(by_threads[thread_counts[0]]), operations, cells))
    return rows


def share(part, memory):
    return f"{part * 100:.0f} %" + ("" if memory is None else f", memory {memory * 100:.0f} %")


def table(rows, thread_counts):
    heads = "".join(f" ms, {threads} thread{'s' * (threads > 1)} | GFLOP/s | of peak |" for threads in thread_counts)
    lines = [f"| network | layer | times | MFLOP |{heads}", "|-|-|-:|-:|" + "-:|-:|-:|" * len(thread_counts)]
    for name, text, times, operations, cells in rows:
        numbers = "".join(f" {ms:.3g} | {rate:.1f} | {share(part, memory)} |" for ms, rate, part, memory in cells)
        lines.append(f"| {name} | {text} | {times} | {operations * 1e-6:.4g} |{numbers}")
    return "\n".join(lines)
