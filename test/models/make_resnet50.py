"""ResNet-50 (He et al. 2016), the variant whose stride lies in the 3x3 convolution, as torchvision has it."""

from model_builder import Builder

STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]  # width, blocks, stride of the first
EXPANSION = 4


def bottleneck(net, x, inputs, width, stride):
    outputs = width * EXPANSION
    y = net.op("Relu", [net.batch_norm(net.conv(x, inputs, width, 1), width)])
    y = net.op("Relu", [net.batch_norm(net.conv(y, width, width, 3, stride), width)])
    # A small scale at the end of the branch: sixteen sums would otherwise grow the activations.
    y = net.batch_norm(net.conv(y, width, outputs, 1), outputs, scale=0.25)
    if stride != 1 or inputs != outputs:
        x = net.batch_norm(net.conv(x, inputs, outputs, 1, stride), outputs)
    return net.op("Relu", [net.op("Add", [y, x])])


def build(classes=1000):
    net = Builder("resnet50", seed=50)
    x = net.input("image", "float32", ["N", 3, "H", "W"])
    x = net.op("Relu", [net.batch_norm(net.conv(x, 3, 64, 7, 2), 64)])
    x = net.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks, stride in STAGES:
        for block in range(blocks):
            x = bottleneck(net, x, channels, width, stride if block == 0 else 1)
            channels = width * EXPANSION
    x = net.op("Flatten", [net.op("GlobalAveragePool", [x])], axis=1)
    net.output(net.linear(x, channels, classes), "logits", shape=["N", classes])
    return net
