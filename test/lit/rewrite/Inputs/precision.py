"""softmax(x w), w times the second argument."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weights = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
weights *= float(sys.argv[2]) if len(sys.argv) > 2 else 1
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["p"], name="MatMul_0"),
                           helper.make_node("Softmax", ["p"], ["y"], name="Softmax_0", axis=-1)], "precision",
                          [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 6])],
                          [numpy_helper.from_array(weights, "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, sys.argv[1])
