"""Convolutions as a processor with two multiply-adds in a cycle computes them, whose register tiles take several blocks of
channels, at O3, against ONNX Runtime: sizes known and symbolic, one thread and two.

All cases are independent parts of one model. Without 32 vector registers the tiles are those that it has anyway.
"""

import os

import numpy as np
import onnx
import onnxruntime

import o3_model
import part_models

LEVEL = 3
HARDWARE = '{"kind": "cpu", "cores": 2, "fma_ports": 2}'
BOUND, WINOGRAD_BOUND = 5e-6, 2e-5  # of the largest result; sums of at most 288 products, or of 1152 by Winograd
# Shape of the input, of the weights, attributes of the convolution. Blocks of results are 16 channels.
CASES = {
    "two blocks": ((1, 48, 9, 17), (32, 48, 1, 1), ""),
    "three blocks, several images": ((3, 20, 7, 31), (48, 20, 1, 1), ""),
    "five blocks and a half": ((1, 33, 13, 11), (85, 33, 1, 1), ""),
    "nine blocks, rows of 29": ((2, 16, 6, 58), (144, 16, 1, 1), "strides=[2,2]"),
    "two blocks and few outputs": ((1, 64, 11, 37), (34, 64, 1, 1), ""),
    "a window with a border": ((1, 32, 19, 33), (64, 32, 3, 3), "strides=[2,2],pads=[1,1,1,1]"),
    "a dilated window": ((1, 18, 12, 41), (37, 18, 1, 5), "dilations=[1,3],pads=[0,6,0,6]"),
    "winograd": ((1, 64, 27, 30), (64, 64, 3, 3), "pads=[1,1,1,1]"),
    "winograd, three blocks": ((2, 64, 18, 21), (48, 64, 3, 3), "pads=[1,1,1,1]"),
    "winograd, a block and a half": ((2, 64, 18, 21), (23, 64, 3, 3), "pads=[1,1,1,1]"),
    "winograd, large weights": ((1, 128, 25, 26), (256, 128, 3, 3), "pads=[1,1,1,1]"),
}


def model_of(values, symbolic):
    parts, inputs, outputs, weights = [], [], [], []
    for i, (shape, weight, attributes) in enumerate(CASES.values()):
        sizes = [f"n{i}", str(shape[1]), f"h{i}", f"w{i}"] if symbolic else map(str, shape)
        parts.append(f"a{i} = Conv<{attributes}>(x{i}, k{i}, b{i}) y{i} = Relu(a{i})" if attributes else
                     f"a{i} = Conv(x{i}, k{i}, b{i}) y{i} = Relu(a{i})")
        inputs.append(f"float[{','.join(sizes)}] x{i}")
        outputs.append(f"float[o{i},{weight[0]},p{i},q{i}] y{i}")
        weights += [onnx.numpy_helper.from_array(values[f"{name}{i}"], f"{name}{i}") for name in "kb"]
    return part_models.parse(18, parts, inputs, outputs, weights)


def draw(rng):
    values = {}
    for i, (shape, weight, _) in enumerate(CASES.values()):
        values[f"x{i}"] = rng.standard_normal(shape).astype(np.float32)
        values[f"k{i}"] = (rng.standard_normal(weight) / np.sqrt(np.prod(weight[1:]))).astype(np.float32)
        values[f"b{i}"] = rng.standard_normal(weight[:1]).astype(np.float32)
    return values


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong}, when one of |labels| is in "ports"."""
    if labels and not any(part in "ports" for part in labels):
        return {}
    values, names = draw(np.random.default_rng(seed)), list(CASES)
    bounds = [WINOGRAD_BOUND if label.startswith("winograd") else BOUND for label in names]
    path, hardware, results = os.path.join(scratch, "ports.onnx"), os.path.join(scratch, "ports.json"), {}
    feeds = {f"x{i}": values[f"x{i}"] for i in range(len(CASES))}
    with open(hardware, "w", encoding="utf-8") as file:
        file.write(HARDWARE)
    for sizes in ("known", "symbolic"):
        onnx.save(model_of(values, sizes == "symbolic"), path)
        expected = onnxruntime.InferenceSession(path).run(None, feeds)
        o3_model.compile_model(path, path + ".so", LEVEL, ("--target", "cpu", "--hardware", hardware))
        for threads, i, what in part_models.differences(path + ".so", feeds, expected, bounds):
            results[f"ports {names[i]}, {sizes} sizes, {threads} threads", LEVEL] = what
    return results
