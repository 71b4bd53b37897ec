"""What the generators of networks share: a graph that grows node by node, with seeded weights.

    net = Builder("net", seed=1)
    x = net.input("image", "float32", ["N", 3, "H", "W"])
    x = net.relu(net.batch_norm(net.conv(x, 3, 64, 7, stride=2)))
    net.output(net.op("Softmax", [x], axis=-1), "scores")
    net.save("net.onnx")

Weights are scaled so that activations keep their size through the network (He et al. 2015, "Delving deep into
rectifiers"); the statistics of batch normalisations are those that such activations have.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 17, 8


class Builder:
    def __init__(self, name, seed):
        self.graph = onnx.GraphProto(name=name)
        self.rng = np.random.default_rng(seed)
        self.counts = {}

    def unique(self, kind):
        self.counts[kind] = self.counts.get(kind, -1) + 1
        return f"{kind}_{self.counts[kind]}"

    def input(self, name, dtype, shape):
        number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.graph.input.append(helper.make_tensor_value_info(name, number, shape))
        return name

    def output(self, value, name, dtype="float32", shape=None):
        """Names the last node's result; |shape| may hold symbols."""
        for node in self.graph.node:
            node.output[:] = [name if item == value else item for item in node.output]
            node.input[:] = [name if item == value else item for item in node.input]
        number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.graph.output.append(helper.make_tensor_value_info(name, number, shape))

    def constant(self, array, kind="const", dtype=None):
        name = self.unique(kind)
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def normal(self, shape, deviation, kind):
        return self.constant(self.rng.standard_normal(shape, np.float32) * np.float32(deviation), kind)

    def uniform(self, count, low, high, kind):
        return self.constant(self.rng.uniform(low, high, count).astype(np.float32), kind)

    def op(self, kind, inputs, **attrs):
        name = self.unique(kind)
        self.graph.node.append(helper.make_node(kind, inputs, [f"{name}_out"], name, **attrs))
        return f"{name}_out"

    # ---- Layers ----

    def conv(self, x, inputs, outputs, kernel, stride=1, group=1):
        fan_in = inputs // group * kernel * kernel
        weight = self.normal((outputs, inputs // group, kernel, kernel), (2 / fan_in) ** 0.5, "conv_weight")
        return self.op("Conv", [x, weight], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
                       dilations=[1, 1], group=group)

    def batch_norm(self, x, channels, scale=1.0):
        return self.op("BatchNormalization",
                       [x, self.uniform(channels, 0.8 * scale, 1.2 * scale, "bn_scale"),
                        self.uniform(channels, -0.1, 0.1, "bn_bias"), self.uniform(channels, -0.1, 0.1, "bn_mean"),
                        self.uniform(channels, 0.8, 1.2, "bn_var")], epsilon=1e-5, momentum=0.9)

    def linear(self, x, inputs, outputs):
        weight = self.normal((outputs, inputs), (1 / inputs) ** 0.5, "fc_weight")
        return self.op("Gemm", [x, weight, self.uniform(outputs, -0.1, 0.1, "fc_bias")], transB=1)

    def model(self):
        model = helper.make_model(self.graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
                                  producer_name="o3 test models")
        onnx.checker.check_model(model)
        return model

    def save(self, path):
        onnx.save(self.model(), path)
