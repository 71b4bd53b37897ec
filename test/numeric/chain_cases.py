"""Convolutions and the depthwise ones behind them in one kernel, at O3, against ONNX Runtime.

All cases are independent parts of one model. It is compiled for a small cache, beside which their images are large, and
for two cores, so that a part of an image begins where another ends.
"""

import os
import subprocess

import numpy as np
import onnx
import onnxruntime

import o3_model
import part_models

LEVEL = 3
TARGETS = ("cpu", "x86-64-v3")
HARDWARE = '{"kind": "cpu", "cores": 2, "l2_bytes": 131072}'
BOUND = 2e-6  # of the largest result; sums of at most 75 products, then 25
# Shape of the input; of weights, whose biases are as long as their first dimension; ONNX text from x to y.
CASES = {
    "three blocks, rows shared": (
        (1, 13, 57, 61), ((44, 13, 1, 1), (44, 1, 3, 3)),
        "a = Conv(x, w0, b0) b = Clip(a, lo, hi) c = Conv<group=44,pads=[1,1,1,1]>(b, w1, b1) y = Relu(c)"),
    "stride 2 behind a window": (
        (1, 3, 101, 67), ((40, 3, 5, 5), (40, 1, 3, 3)),
        "a = Conv<strides=[1,1],pads=[2,2,2,2]>(x, w0, b0) b = HardSwish(a) "
        "y = Conv<group=40,strides=[2,2],pads=[1,1,1,1]>(b, w1, b1)"),
    "five rows, uneven border": (
        (1, 16, 110, 45), ((32, 16, 1, 1), (32, 1, 5, 3)),
        "a = Conv(x, w0) y = Conv<group=32,strides=[2,1],pads=[2,1,1,2]>(a, w1, b1)"),
    "rows of their own": (
        (1, 16, 90, 61), ((32, 16, 1, 1), (32, 1, 3, 3)),
        "a = Conv(x, w0, b0) b = Relu(a) y = Conv<group=32,strides=[3,2],pads=[1,0,0,1]>(b, w1)"),
    "sparse": (
        (1, 64, 40, 83), ((64, 64, 1, 1), (64, 1, 3, 3)),
        "a = Conv(x, w0, b0) b = Relu(a) y = Conv<group=64,pads=[1,1,1,1]>(b, w1, b1)"),
}


def part(number, case, rng):
    """The text of a case, its constants, and x."""
    shape, weights, text = case
    values = {"lo": np.float32(-0.5), "hi": np.float32(1)}
    for i, weight in enumerate(weights):
        values[f"w{i}"] = rng.standard_normal(weight) / np.sqrt(np.prod(weight[1:]))
        values[f"b{i}"] = rng.standard_normal(weight[0])
    if number == list(CASES).index("sparse"):
        values["w0"] *= np.kron(rng.permutation(16).reshape(4, 4) < 3, np.ones((16, 16)))[:, :, None, None]
    words = [f"p{number}_{word}" if word.isidentifier() and len(word) < 3 else word
             for word in text.replace("(", " ( ").replace(")", " )").replace(",", " , ").split(" ")]
    constants = [onnx.numpy_helper.from_array(np.asarray(value, np.float32), f"p{number}_{name}")
                 for name, value in values.items() if f"p{number}_{name}" in words]
    return " ".join(words), constants, rng.standard_normal(shape).astype(np.float32)


def model_of(rng):
    parts = [part(number, case, rng) for number, case in enumerate(CASES.values())]
    inputs = [f"float[{','.join(map(str, x.shape))}] p{i}_x" for i, (_, _, x) in enumerate(parts)]
    outputs = [f"float[p{i}n,p{i}c,p{i}h,p{i}w] p{i}_y" for i in range(len(parts))]
    model = part_models.parse(17, [text for text, _, _ in parts], inputs, outputs,
                              [constant for _, constants, _ in parts for constant in constants])
    for node in model.graph.node:
        node.name = node.output[0]
    return model, {f"p{i}_x": x for i, (_, _, x) in enumerate(parts)}


def chains_of(path, options):
    text = subprocess.run([os.path.join(o3_model.BUILD, "bin", "o3c"), path, f"-O{LEVEL}", "--explain", *options,
                           "--stop-after", "fuse", "-o", path + ".mlir"], capture_output=True, text=True, check=True).stderr
    return {int(line.split("_chain_p")[1].split("_")[0]) for line in text.splitlines() if "_chain_p" in line}


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong}, when one of |labels| is in "chain"."""
    if labels and not any(part in "chain" for part in labels):
        return {}
    (model, feeds), names = model_of(np.random.default_rng(seed)), list(CASES)
    path, hardware, results = os.path.join(scratch, "chain.onnx"), os.path.join(scratch, "chain.json"), {}
    onnx.save(model, path)
    with open(hardware, "w", encoding="utf-8") as file:
        file.write(HARDWARE)
    expected = onnxruntime.InferenceSession(path).run(None, feeds)
    for target in TARGETS:
        options = ("--target", target, "--hardware", hardware)
        o3_model.compile_model(path, path + ".so", LEVEL, options)
        chains = chains_of(path, options)
        for threads, i, what in part_models.differences(path + ".so", feeds, expected, [BOUND] * len(CASES)):
            results[f"chain {names[i]}, {target}, {threads} threads", LEVEL] = what if i in chains else "it is no chain"
    return results
