"""What is measured: the networks of test/models, the same pruned and in halves, and a chain that fusion is for, with fixed shapes.

A network is a path and feeds. Whoever runs it gets the same file, whose inputs have the feeds' shapes: an
ahead-of-time compiler is told what it compiles for, and the others gain by it, too.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "test", "numeric"), os.path.join(ROOT, "test", "models")]

import test_networks
from model_builder import Builder

BUILD = test_networks.BUILD
# name: rows, columns in, columns out, whether the norm and GELU are written as the 9 and 5 ops that exporters before
# opset 17 write
CHAINS = {"norm_gelu_matmul_128x768x3072": (128, 768, 3072, False),
          "norm_gelu_matmul_2048x1024x4096": (2048, 1024, 4096, False),
          "norm_gelu_matmul_parts_128x768x3072": (128, 768, 3072, True),
          "norm_gelu_matmul_parts_2048x1024x4096": (2048, 1024, 4096, True)}

# name: the network, what o3-prune is told. The digits come pruned.
PRUNED = {"resnet50_60_16x16": ("resnet50", ["--block", "16x16", "--ratio", "0.6", "--skip-first"]),
          "resnet50_80_16x16": ("resnet50", ["--block", "16x16", "--ratio", "0.8", "--skip-first"]),
          "resnet50_90_unstructured": ("resnet50", ["--unstructured", "--ratio", "0.9", "--skip-first"]),
          "resnet50_95_unstructured": ("resnet50", ["--unstructured", "--ratio", "0.95", "--skip-first"]),
          "mobilenetv2_75_8x8": ("mobilenetv2", ["--block", "8x8", "--ratio", "0.75", "--kernel", "1x1"]),
          "mobilenetv2_75_16x1": ("mobilenetv2", ["--block", "16x1", "--ratio", "0.75", "--kernel", "1x1"]),
          "bert_80_16x16": ("bert", ["--block", "16x16", "--ratio", "0.8", "--ops", "matmul,gemm"])}
# name: the network whose numbers are float16, inputs and results, too.
HALVES = {"resnet50_fp16": "resnet50", "mobilenetv2_fp16": "mobilenetv2"}
DIGITS = os.path.join(ROOT, "models", "digits")


def norm_of_parts(net, x, scale, shift):
    number = lambda value: net.constant(np.float32(value))
    centred = net.op("Sub", [x, net.op("ReduceMean", [x], axes=[-1])])
    variance = net.op("ReduceMean", [net.op("Pow", [centred, number(2)])], axes=[-1])
    deviation = net.op("Sqrt", [net.op("Add", [variance, number(1e-5)])])
    return net.op("Add", [net.op("Mul", [net.op("Div", [centred, deviation]), scale]), shift])


def gelu_of_parts(net, x):
    number = lambda value: net.constant(np.float32(value))
    part = net.op("Add", [net.op("Erf", [net.op("Div", [x, number(2 ** 0.5)])]), number(1)])
    return net.op("Mul", [net.op("Mul", [x, part]), number(0.5)])


def make_chain(rows, depth, columns, in_parts):
    """LayerNormalization, Gelu (a node of opset 20) and a product with a constant matrix."""
    net = Builder("chain", seed=rows)
    x = net.input("x", "float32", ["rows", depth])
    scale, shift = net.uniform(depth, 0.5, 1.5, "scale"), net.uniform(depth, -1, 1, "shift")
    if in_parts:
        x = gelu_of_parts(net, norm_of_parts(net, x, scale, shift))
    else:
        x = net.op("Gelu", [net.op("LayerNormalization", [x, scale, shift], axis=-1)])
    weight = net.normal((depth, columns), depth ** -0.5, "weight")
    net.output(net.op("MatMul", [x, weight]), "y", shape=["rows", columns])
    opset = onnx.helper.make_opsetid("", 13 if in_parts else 20)
    model = onnx.helper.make_model(net.graph, opset_imports=[opset], ir_version=9)
    feeds = {"x": np.random.default_rng(depth).standard_normal((rows, depth), np.float32)}
    return model, feeds


def names():
    """A network that wants a value of an input is left out: its twin without that input is there."""
    plain = [name for name in test_networks.NETWORKS if "--value" not in test_networks.OPTIONS.get(name, ())]
    return [*plain, *HALVES, *PRUNED, "digits", *CHAINS]


def is_chain(name):
    return name in CHAINS


def is_half(name):
    return name in HALVES


def is_sparse(name):
    return name in PRUNED or name == "digits"


def is_unstructured(name):
    return "--unstructured" in PRUNED.get(name, (None, []))[1]


def prune(path, options):
    with tempfile.TemporaryDirectory(prefix="o3-bench-") as folder:
        pruned = os.path.join(folder, "pruned.onnx")
        command = [os.path.join(BUILD, "bin", "o3-prune"), path, *options, "--output", pruned]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return onnx.load(pruned)


def in_halves(model, feeds):
    """The same with float16 where float32 was, in place; of networks that have no Cast."""
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            numbers = onnx.numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    return model, {name: feed.astype(np.float16) if feed.dtype == np.float32 else feed for name, feed in feeds.items()}


def get(name):
    """(model, feeds) of a network, its shapes as in the file."""
    if is_chain(name):
        return make_chain(*CHAINS[name])
    if name == "digits":
        images = np.load(os.path.join(DIGITS, "test_images.npy"))
        return onnx.load(os.path.join(DIGITS, "digits_sparse.onnx")), {"image": images[:1, None].astype(np.float32)}
    if is_half(name):
        return in_halves(*get(HALVES[name]))
    base, options = PRUNED.get(name, (name, None))
    path, _, feeds = test_networks.NETWORKS[base]
    return prune(path(), options) if options else onnx.load(path()), feeds


def fix_shapes(model, feeds):
    """Gives the inputs the shapes of the feeds, in place; what was inferred from others is dropped."""
    for value in model.graph.input:
        if value.name in feeds:
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for size in feeds[value.name].shape:
                shape.dim.add().dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def shape_text(feeds):
    return "x".join(map(str, next(iter(feeds.values())).shape))
