"""Products with sparse weights at O3: every format, random patterns of zeros, awkward sizes, against ONNX Runtime.

A case is a format and a number, which with the seed says all about a convolution or a matrix product and the
activation behind it: sizes, zeros from none to all, batches, groups, dilations, borders, symbolic dimensions.
"""

import os
import re

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import o3_model

# The sizes in a format's name: blocks of zeros, outputs x inputs, or N:M
BLOCKS = ["bsr-16x16", "bsr-32x32", "bsr-8x8", "bsr-4x4", "bsr-16x1", "bsr-8x1", "bsr-1x16", "bsr-3x5", "csr"]
GROUPS = ["nm-2:4", "nm-3:16", "nm-2:5", "nm-3:32"]
HYBRIDS = ["hybrid"]
CASES = 8
TARGETS = ("x86-64-v3", "native")


def prune(weight, block, zeros, rng):
    """|weight| (outputs x inputs x ...) with a share of |zeros| of its blocks gone."""
    counts = [-(-size // step) for size, step in zip(weight.shape, block)]
    kept = rng.random((*counts, *weight.shape[2:])) >= zeros
    for axis, step in enumerate(block):
        kept = np.repeat(kept, step, axis)
    return weight * kept[:weight.shape[0], :weight.shape[1]]


def prune_groups(weight, most, of, zeros, rng):
    """At most |most| of |of| neighbouring inputs kept, and a share of |zeros| of these gone, too."""
    kept = np.zeros(weight.shape, bool)
    for start in range(0, weight.shape[1], of):
        order = rng.random(weight[:, start:start + of].shape).argsort(1).argsort(1)
        kept[:, start:start + of] = order < most
    return weight * (kept & (rng.random(weight.shape) >= zeros * (zeros >= 0.5)))


def prune_around(weight, zeros, rng):
    """|weight| without a share of |zeros| of its 16 x 16 blocks, but for some numbers where these were: none and all are
    blocks alone and numbers alone."""
    return np.where(rng.random(weight.shape) < 0.1, weight, prune(weight, (16, 16), zeros, rng))


def patterned(name, weight, zeros, rng):
    """|weight| with zeros that the format was made for."""
    if name in HYBRIDS:
        return prune_around(weight, zeros, rng)
    sizes = [int(size) for size in re.findall("[0-9]+", name)]
    return prune_groups(weight, *sizes, zeros, rng) if name in GROUPS else prune(weight, sizes or (1, 1), zeros, rng)


def conv(rng, name, zeros):
    kernel = int(rng.choice([1, 1, 2, 3, 3, 5]))
    group = 2 if rng.random() < 0.2 else 1
    inputs, outputs = (32, 32) if group > 1 else (int(rng.choice([3, 16, 17, 48, 64])), int(rng.choice([5, 16, 33, 64])))
    dilation = int(rng.integers(1, 3)) if kernel > 1 else 1
    least = dilation * (kernel - 1) + 1
    shape = [int(rng.integers(1, 4)), inputs, int(rng.integers(least, 18)), int(rng.integers(least, 37))]
    weight = patterned(name, rng.standard_normal((outputs, inputs // group, kernel, kernel)), zeros, rng)
    pads = [int(pad) for pad in rng.integers(0, 3, 4)] if kernel > 1 and rng.random() < 0.7 else [0] * 4
    node = helper.make_node("Conv", ["x", "w", "b"], ["t"], strides=[int(rng.integers(1, 3))] * 2, pads=pads, group=group,
                            dilations=[dilation] * 2)
    nodes = [node]
    if rng.random() < 0.3:  # the image is a slice of a larger one
        shape[1] += 3
        node.input[0] = "s"
        nodes = [*(helper.make_node("Constant", [], [name], value_ints=[value])
                   for name, value in (("from", 2), ("to", 2 + inputs), ("axis", 1))),
                 helper.make_node("Slice", ["x", "from", "to", "axis"], ["s"]), node]
    return shape, ["N", shape[1], "H", "W"], weight, (outputs,), nodes


def matmul(rng, name, zeros):
    depth, columns = int(rng.choice([16, 17, 64, 100])), int(rng.choice([5, 16, 33, 70]))
    batch = [int(rng.integers(1, 4))] if rng.random() < 0.5 else []
    weight = patterned(name, rng.standard_normal((columns, depth)), zeros, rng).T
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["t"])]
    return [*batch, int(rng.choice([1, 2, 7, 28, 29, 65, 131])), depth], [*["B"][:len(batch)], "M", depth], weight, (columns,), nodes


def build(rng, name, number):
    zeros = float(rng.choice([0, 0.5, 0.8, 0.95, 1]))
    shape, symbols, weight, bias, nodes = (matmul if number % 3 == 2 else conv)(rng, name, zeros)
    symbolic = rng.random() < 0.4
    nodes.append(helper.make_node("Relu" if rng.random() < 0.5 else "Sigmoid", ["t"], ["y"]))
    start = np.full(bias, 0.5) if rng.random() < 0.3 else rng.standard_normal(bias)
    constants = [numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name)
                 for name, array in (("w", weight), ("b", start))]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, symbols if symbolic else shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, rng.standard_normal(shape).astype(np.float32)


def reference(model, x):
    """The result and the sums before the activation, whose size bounds the rounding error: neither activation
    makes a difference larger, and a sigmoid's result hides how large they were."""
    with_sums = onnx.ModelProto()
    with_sums.CopyFrom(model)
    with_sums.graph.output.append(helper.make_tensor_value_info("t", TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(with_sums.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["y", "t"], {"x": x})


def outcome(model, x, name, target, library):
    """None, or what is wrong."""
    path = library + ".onnx"
    onnx.save(model, path)
    options = ["--sparse-format", name, *(["--target", target] if target != "native" else [])]
    try:
        o3_model.compile_model(path, library, 3, options)
        got = o3_model.Model(library).session(threads=2).run([x])[0]
    except o3_model.O3Error as error:
        return f"{error.code}: {error}"
    expected, sums = reference(model, x)
    if got.shape != expected.shape:
        return f"shape {got.shape}, {expected.shape} is right"
    error = np.abs(got - expected).max(initial=0)
    limit = 1e-5 * max(1, np.abs(sums).max(initial=0))
    return None if error <= limit else f"off by {error}, at most {limit} is right"


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong} for the cases whose labels hold one of |labels|."""
    results = {}
    for kind, name in enumerate(BLOCKS + GROUPS + HYBRIDS):
        for number in range(CASES):
            label = f"sparse {name} {number}"
            if labels and not any(part in label for part in labels):
                continue
            model, x = build(np.random.default_rng([seed, number, kind]), name, number)
            results[label, 3] = outcome(model, x, name, TARGETS[number % len(TARGETS)],
                                        os.path.join(scratch, f"{name}-{number}.so"))
    return results
