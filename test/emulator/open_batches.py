"""Small networks whose batch is known only at run time.

    save(path, rng)                   windows, pools, a depthwise convolution, attention and rows; x: [N, 3, 15, 13]
    save_products(path, rng)          products of long k, whose steps the blocks of a cluster share; x: [N, 40, 1536]
    draw_batches(rng)                 how many images the runs of the first have: two numbers, one of them twice
    error_of(path, library, batches, seed)
                                      the largest error's norm over runs of one session with as many images;
                                      then a run without any
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, WIDTH, CHANNELS = 2, 16, 32
SIZES = (3, 15, 13)
BATCHES = (2, 3, 5, 7, 17)
ROWS, LONG = 40, 1536  # of a batch, and k
PRODUCT_BATCHES = (1, 4, 5, 16, 17, 33, 1)  # both sides of what a kernel of its own is for
PRODUCT_MULTIPROCESSORS = 132  # blocks of a cluster then share the sums of a tile, where tiles are few
LEVEL = 2
TOLERANCES = {"fp32": 1e-5, "fp16": 1e-2}  # of the error's norm


def write(path, nodes, constants, sizes, result, result_sizes):
    graph = helper.make_graph(nodes, "batches", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *sizes])],
                              [helper.make_tensor_value_info(result, TensorProto.FLOAT, ["N", *result_sizes])],
                              [numpy_helper.from_array(value, key) for key, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def save_products(path, rng):
    """Products of 1536, 64 and 1536 of k in a row, with tiles that reach from one batch into the next: an epilogue with a
    bias and Relu, then one with a residual."""
    constants = {name: (rng.standard_normal(shape) / shape[0]**0.5).astype(np.float32)
                 for name, shape in (("U", (LONG, 64)), ("b", (64,)), ("V", (64, LONG)), ("W", (LONG, 64)))}
    nodes = [helper.make_node(op, sources, [f"v{i}"], name=f"{op}_{i}") for i, (op, sources) in enumerate([
        ("MatMul", ["x", "U"]), ("Add", ["v0", "b"]), ("Relu", ["v1"]), ("MatMul", ["v2", "V"]),
        ("MatMul", ["v3", "W"]), ("Add", ["v4", "v2"])])]
    write(path, nodes, constants, (ROWS, LONG), "v5", (ROWS, 64))


def save(path, rng):
    nodes, constants = [], {"scale": np.array(WIDTH**-0.5, np.float32)}

    def constant(*shape, values=None):
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else (shape or [1])[0]
        drawn = (rng.standard_normal(shape) / fan_in**0.5).astype(np.float32)
        constants[f"c{len(constants)}"] = drawn if values is None else np.array(values, np.int64)
        return f"c{len(constants) - 1}"

    def add(op, sources, **attributes):
        nodes.append(helper.make_node(op, sources, [f"v{len(nodes)}"], name=f"{op}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    def part(x, perm):
        product = add("Add", [add("MatMul", [x, constant(CHANNELS, CHANNELS)]), constant(CHANNELS)])
        return add("Transpose", [add("Reshape", [product, constant(values=[0, -1, HEADS, WIDTH])])], perm=perm)

    x = add("Relu", [add("Conv", ["x", constant(CHANNELS, 3, 3, 3), constant(CHANNELS)], pads=[1] * 4, strides=[2, 2])])
    x = add("MaxPool", [x], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    y = add("Relu", [add("Conv", [x, constant(CHANNELS, 1, 3, 3)], pads=[1] * 4, group=CHANNELS)])
    x = add("Relu", [add("Add", [add("Conv", [y, constant(CHANNELS, CHANNELS, 1, 1), constant(CHANNELS)]), x])])
    x = add("Transpose", [add("Reshape", [x, constant(values=[0, CHANNELS, -1])])], perm=[0, 2, 1])
    x = add("LayerNormalization", [x, constant(CHANNELS), constant(CHANNELS)])
    q, k, v = part(x, [0, 2, 1, 3]), part(x, [0, 2, 3, 1]), part(x, [0, 2, 1, 3])
    weights = add("Softmax", [add("Mul", [add("MatMul", [q, k]), "scale"])], axis=-1)
    y = add("Transpose", [add("MatMul", [weights, v])], perm=[0, 2, 1, 3])
    x = add("Add", [add("Reshape", [y, constant(values=[0, -1, CHANNELS])]), x])
    x = add("Softmax", [add("MatMul", [x, constant(CHANNELS, 24)])], axis=-1)
    write(path, nodes, constants, SIZES, x, (None, 24))


def draw_batches(rng):
    batch = int(rng.choice(BATCHES))
    return batch, batch, 1


def error_of(path, library, batches, seed):
    import o3_model
    import onnxruntime

    rng = np.random.default_rng(seed)
    reference = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    sizes = reference.get_inputs()[0].shape[1:]
    session, errors = o3_model.Model(library).session(), []
    for size in batches:
        x = rng.standard_normal((size, *sizes)).astype(np.float32)
        expected = reference.run(None, {"x": x})[0].astype(np.float64)
        errors.append(float(np.linalg.norm(session.run([x])[0] - expected) / np.linalg.norm(expected)))
    empty = session.run([np.zeros((0, *sizes), np.float32)])[0]
    assert empty.shape == (0, *expected.shape[1:]), f"no images give {empty.shape}"
    return float(np.max(errors))  # a NaN stays
