"""MobileNetV2 (Sandler et al. 2018), width 1.0, as torchvision has it."""

import numpy as np

from model_builder import Builder

# expansion, channels, blocks, stride of the first
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
LAST = 1280


def relu6(net, x):
    return net.op("Clip", [x, net.constant(np.float32(0), "min"), net.constant(np.float32(6), "max")])


def inverted_residual(net, x, inputs, outputs, stride, expansion):
    hidden = inputs * expansion
    y = x
    if expansion != 1:
        y = relu6(net, net.batch_norm(net.conv(y, inputs, hidden, 1), hidden))
    y = relu6(net, net.batch_norm(net.conv(y, hidden, hidden, 3, stride, group=hidden), hidden))
    y = net.batch_norm(net.conv(y, hidden, outputs, 1), outputs, scale=0.7)
    return net.op("Add", [x, y]) if stride == 1 and inputs == outputs else y


def build(classes=1000):
    net = Builder("mobilenetv2", seed=2)
    x = net.input("image", "float32", ["N", 3, "H", "W"])
    x = relu6(net, net.batch_norm(net.conv(x, 3, 32, 3, 2), 32))
    channels = 32
    for expansion, outputs, blocks, stride in STAGES:
        for block in range(blocks):
            x = inverted_residual(net, x, channels, outputs, stride if block == 0 else 1, expansion)
            channels = outputs
    x = relu6(net, net.batch_norm(net.conv(x, channels, LAST, 1), LAST))
    x = net.op("Flatten", [net.op("GlobalAveragePool", [x])], axis=1)
    net.output(net.linear(x, LAST, classes), "logits", shape=["N", classes])
    return net
