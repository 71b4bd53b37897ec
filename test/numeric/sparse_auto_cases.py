"""Random layers at O3, where each weight gets the format that is expected to be fastest, against float64.

A case is a number, which with the seed says all: convolutions and products, blocks of zeros of many shapes, none to all
of them zero, sizes that are no multiple of anything.
"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import o3_model
from sparse_cases import prune

COUNT = 40
BLOCKS = [(1, 1), (1, 4), (4, 1), (4, 4), (8, 8), (8, 1), (16, 1), (1, 16), (16, 16), (32, 32)]
ZEROS = [0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99]


def windows(x, kernel, stride, pad):
    """N C KH KW OH OW"""
    padded = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    view = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    return view.transpose(0, 1, 4, 5, 2, 3)


def conv(rng, block, zeros):
    outputs, inputs = (int(n) for n in rng.choice([5, 16, 24, 40, 64, 96], 2))
    kernel, stride = int(rng.choice([1, 1, 3, 5])), int(rng.choice([1, 1, 2]))
    side, batch = int(rng.choice([5, 7, 14, 19, 28])), int(rng.integers(1, 3))
    w = prune(rng.standard_normal((outputs, inputs, kernel, kernel)), block, zeros, rng).astype(np.float32)
    x = rng.standard_normal((batch, inputs, side, side)).astype(np.float32)
    pad = kernel // 2
    y = np.einsum("nckluv,mckl->nmuv", windows(x.astype(np.float64), kernel, stride, pad), w.astype(np.float64),
                  optimize=True)
    return x, w, y, (outputs, 1, 1), [helper.make_node("Conv", ["x", "w"], ["t"], pads=[pad] * 4, strides=[stride] * 2)]


def matmul(rng, block, zeros):
    inputs, outputs = int(rng.choice([17, 64, 100, 256])), int(rng.choice([5, 48, 70, 300]))
    w = prune(rng.standard_normal((outputs, inputs)), block, zeros, rng).T.astype(np.float32)
    x = rng.standard_normal((int(rng.choice([1, 3, 29, 128])), inputs)).astype(np.float32)
    return x, np.ascontiguousarray(w), x.astype(np.float64) @ w.astype(np.float64), (outputs,), \
        [helper.make_node("MatMul", ["x", "w"], ["t"])]


def outcome(rng, library):
    """None, or what is wrong."""
    block, zeros = BLOCKS[int(rng.integers(len(BLOCKS)))], float(rng.choice(ZEROS))
    x, w, y, shape, nodes = (matmul if rng.random() < 0.35 else conv)(rng, block, zeros)
    b = rng.standard_normal(shape).astype(np.float32)
    nodes += [helper.make_node("Add", ["t", "b"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    fixed = rng.random() < 0.7
    sizes = list(x.shape) if fixed else ["N", *x.shape[1:]]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), library + ".onnx")
    try:
        o3_model.compile_model(library + ".onnx", library, 3)
        got = o3_model.Model(library).session(threads=2).run([x])[0]
    except o3_model.O3Error as error:
        return f"{error.code}: {error}"
    wanted = np.maximum(y + b, 0)
    if got.shape != wanted.shape:
        return f"shape {got.shape}, {wanted.shape} is right"
    limit = 2e-5 * max(1, np.abs(y + b).max(initial=0))
    error = np.abs(got - wanted).max(initial=0)
    return None if error <= limit else f"off by {error}, at most {limit} is right; {block} blocks, {zeros} zeros"


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong} for the cases whose labels hold one of |labels|."""
    results = {}
    for number in range(COUNT):
        label = f"sparse auto {number}"
        if not labels or any(part in label for part in labels):
            results[label, 3] = outcome(np.random.default_rng([seed, 77, number]), os.path.join(scratch, f"auto{number}.so"))
    return results
