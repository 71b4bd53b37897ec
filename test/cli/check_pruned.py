#!/usr/bin/env python3
"""Prunes random models with o3-prune (the argument) and checks each weight against NumPy: the blocks of smallest
mean square are zero, everything else is as it was, in the file, too."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PRUNE = sys.argv[1]


class Layer:
    """|rows| says which axes of |weight| are (groups * outputs, inputs); the other axes are positions."""

    def __init__(self, name, weight, rows, cols, groups=1, skipped=None):
        self.name, self.weight, self.rows, self.cols = name, weight, rows, cols
        self.groups, self.skipped = groups, skipped

    def view(self, array):
        moved = np.moveaxis(array, (self.rows, self.cols), (0, 1)).astype(np.float64)
        outputs, inputs = moved.shape[:2]
        return moved.reshape(self.groups, outputs // self.groups, inputs, -1)


def random_model(rng, external):
    """A graph of unconnected layers: nothing here is run."""
    layers, nodes, initializers, inputs = [], [], [], []

    def add(op, name, shape, rows, cols, dtype=np.float32, groups=1, skipped=None, store="raw", **attrs):
        value = rng.standard_normal(shape).astype(dtype)
        weight, x = name + ".w", name + ".x"
        inputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, None))
        operands = [x, weight]
        if store == "typed":
            initializers.append(helper.make_tensor(weight, TensorProto.FLOAT, shape, value.flatten().tolist()))
        elif store == "node":
            nodes.append(helper.make_node("Constant", [], [weight], value=numpy_helper.from_array(value, weight)))
        else:
            initializers.append(numpy_helper.from_array(value, weight))
        if store == "transposed":
            nodes.append(helper.make_node("Transpose", [weight], [weight + ".t"], perm=attrs.pop("perm")))
            operands[1] = weight + ".t"
        if store == "left":
            operands.reverse()
        if groups > 1:
            attrs["group"] = groups
        nodes.append(helper.make_node(op, operands, [name + ".y"], name=name, **attrs))
        layers.append(Layer(name, weight, rows, cols, groups, skipped))

    add("Conv", "conv3x3", (37, 19, 3, 3), 0, 1)
    add("Conv", "grouped", (24, 5, 3, 1), 0, 1, groups=3)
    add("Conv", "depthwise", (32, 1, 3, 3), 0, 1, groups=32, skipped="depthwise")
    add("Conv", "line", (16, 33, 5), 0, 1, store="typed")
    add("Conv", "half", (17, 16, 1, 1), 0, 1, dtype=np.float16)
    add("Gemm", "gemm", (31, 47), 1, 0)
    add("Gemm", "gemm_t", (31, 47), 0, 1, transB=1)
    add("MatMul", "matmul", (65, 33), 1, 0, store="node")
    add("MatMul", "stack", (3, 20, 18), 2, 1)
    add("MatMul", "turned", (64, 15), 0, 1, store="transposed", perm=[1, 0])
    add("MatMul", "left", (40, 21), 0, 1, store="left")
    add("MatMul", "double", (5, 7), 1, 0, dtype=np.float64)
    add("MatMul", "whole", (16, 16), 1, 0, dtype=np.int32, skipped="its weights are no floating-point numbers")
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("gemm.y", TensorProto.FLOAT, None)],
                              initializers, doc_string="kept")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="kept")
    helper.set_model_props(model, {"key": "kept"})
    return model, layers


def blocks_of(view, height, width):
    """Slices of all blocks of a view, first the groups, then positions, rows and columns."""
    groups, rows, cols, positions = view.shape
    return [(g, slice(r, r + height), slice(c, c + width), p) for g in range(groups) for p in range(positions)
            for r in range(0, rows, height) for c in range(0, cols, width)]


def expect_blocks(views, height, width, ratio):
    """What the views are after pruning them together."""
    results = [view.copy() for view in views]
    blocks = [(np.float32(np.mean(np.square(view[block]))), i, block) for i, view in enumerate(views)
              for block in blocks_of(view, height, width)]
    order = sorted(range(len(blocks)), key=lambda k: blocks[k][0])
    for k in order[:int(ratio * len(blocks) + 0.5)]:
        results[blocks[k][1]][blocks[k][2]] = 0
    return results


def expect_nm(view, keep, of):
    result = view.copy()
    for block in blocks_of(view, 1, of):
        part = result[block]
        part[0, np.argsort(np.float32(np.square(part[0])))[:max(0, part.shape[1] - keep)]] = 0
    return result


def tensors(model):
    found = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    found.update({a.t.name: numpy_helper.to_array(a.t) for n in model.graph.node for a in n.attribute if a.name == "value"})
    return found


def without_data(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = list(copy.graph.initializer) + [a.t for n in copy.graph.node for a in n.attribute if a.name == "value"]
    for tensor in kept:
        for field in ("raw_data", "float_data", "external_data", "data_location"):
            tensor.ClearField(field)
    return copy


def run(*args):
    result = subprocess.run([PRUNE, *args], capture_output=True, text=True)
    if result.returncode or result.stderr:
        sys.exit(f"o3-prune {' '.join(args)}: {result.returncode}\n{result.stderr}")
    return result.stdout


def check(folder, rng, options, expect, external=False, left_out=(), uses_magnitude=True):
    model, layers = random_model(rng, external)
    source, target = os.path.join(folder, "in.onnx"), os.path.join(folder, "sub", "out.onnx")
    onnx.save(model, source, save_as_external_data=external, size_threshold=1500, location="in.bin") if external else \
        onnx.save(model, source)
    before = onnx.load(source)
    report = json.loads(run(source, *options, "-o", target, "--json"))
    after = onnx.load(target)
    label = " ".join(options) + (" external" if external else "")
    if without_data(before) != without_data(after):
        sys.exit(f"{label}: more than data has changed")
    if external and not os.path.exists(target + ".data"):
        sys.exit(f"{label}: there is no data file")
    old, new = tensors(before), tensors(after)
    pruned = [layer for layer in layers if not layer.skipped and layer.name not in left_out]
    views = expect([layer.view(old[layer.weight]) for layer in pruned])
    for layer, want in zip(pruned, views):
        got = layer.view(new[layer.weight])
        if uses_magnitude and not np.array_equal(got, want):
            sys.exit(f"{label}: {layer.name}: {np.sum(got != want)} elements are not as expected")
        if not uses_magnitude and abs(np.mean(got == 0) - np.mean(want == 0)) > 0.2:
            sys.exit(f"{label}: {layer.name}: {np.mean(got == 0)} zeros, about {np.mean(want == 0)} expected")
        row = next(r for r in report["layers"] if r["node"] == layer.name)
        if row["zeros_after"] != np.sum(got == 0):
            sys.exit(f"{label}: {layer.name}: the report counts {row['zeros_after']} zeros")
    for layer in set(layers) - set(pruned):
        if not np.array_equal(old[layer.weight], new[layer.weight]):
            sys.exit(f"{label}: {layer.name} should be as it was")


def each(height, width, ratio):
    return lambda views: [expect_blocks([view], height, width, ratio)[0] for view in views]


def main():
    seed = int(os.environ.get("O3_SEED", np.random.SeedSequence().entropy % 2**32))
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "sub"))
        try:
            check(folder, rng, ["--block", "16x16", "--ratio", "0.6"], each(16, 16, 0.6))
            check(folder, rng, ["--block", "5x3", "--ratio", "0.37"], each(5, 3, 0.37), external=True)
            check(folder, rng, ["--block", "8x1", "--ratio", "0.8", "--global"],
                  lambda views: expect_blocks(views, 8, 1, 0.8))
            check(folder, rng, ["--unstructured", "--ratio", "0.9"], each(1, 1, 0.9))
            check(folder, rng, ["--nm", "2:4"], lambda views: [expect_nm(view, 2, 4) for view in views])
            check(folder, rng, ["--nm", "1:3"], lambda views: [expect_nm(view, 1, 3) for view in views], external=True)
            check(folder, rng, ["--block", "4x4", "--ratio", "1"], each(4, 4, 1))
            check(folder, rng, ["--block", "4x4", "--ratio", "0"], each(4, 4, 0))
            check(folder, rng, ["--block", "4x4", "--ratio", "0.5", "--skip-first", "--skip", "gemm*"],
                  each(4, 4, 0.5), left_out=("conv3x3", "gemm", "gemm_t"))
            check(folder, rng, ["--block", "4x4", "--ratio", "0.5", "--ops", "conv", "--kernel", "3x3"],
                  each(4, 4, 0.5), left_out=("grouped", "line", "half", "gemm", "gemm_t", "matmul", "stack", "turned",
                                             "left", "double"))
            check(folder, rng, ["--block", "2x2", "--ratio", "0.5", "--seed", "3"], each(2, 2, 0.5),
                  uses_magnitude=False)
        except SystemExit as error:
            sys.exit(f"{error}\nseed: O3_SEED={seed}")


main()
