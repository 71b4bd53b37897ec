"""A small network whose batch is known only at run time: windows, pools, a depthwise convolution, attention and rows.

    save(path, rng)                  the model; x: [N, 3, 15, 13]
    error_of(path, library, seed)    the largest error's norm over runs of one session with batches that are drawn;
                                     then a run without images
"""

import numpy as np

HEADS, WIDTH, CHANNELS = 2, 16, 32
SIZES = (3, 15, 13)
BATCHES = (2, 3, 5, 7, 17)
LEVEL = 2
TOLERANCES = {"fp32": 1e-5, "fp16": 1e-2}  # of the error's norm


def save(path, rng):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

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
    graph = helper.make_graph(nodes, "batches", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *SIZES])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["N", None, 24])],
                              [numpy_helper.from_array(value, key) for key, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def error_of(path, library, seed):
    import o3_model
    import onnxruntime

    rng = np.random.default_rng(seed)
    reference = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    session, errors = o3_model.Model(library).session(), []
    batch = int(rng.choice(BATCHES))
    for size in (batch, batch, 1):
        x = rng.standard_normal((size, *SIZES)).astype(np.float32)
        expected = reference.run(None, {"x": x})[0].astype(np.float64)
        errors.append(float(np.linalg.norm(session.run([x])[0] - expected) / np.linalg.norm(expected)))
    empty = session.run([np.zeros((0, *SIZES), np.float32)])[0]
    assert empty.shape == (0, *expected.shape[1:]), f"no images give {empty.shape}"
    return float(np.max(errors))  # a NaN stays
