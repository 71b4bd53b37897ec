"""Layers whose weights are packed in the same way, at O2 and O3, against ONNX Runtime: one function folds the weights of all
layers of a kind, each with its own numbers.

All layers are independent parts of one model.
"""

import os

import numpy as np
import onnx
import onnxruntime

import o3_model
import part_models

LEVELS = (2, 3)
LAYERS = 6  # of each kind: more than are worth a function of their own
BOUND = 2e-5
# Shape of x, of w, and what is computed of them.
KINDS = {
    "matrix": ((19, 48), (48, 40), "y = MatMul(x, w)"),
    "turned": ((19, 48), (40, 48), "y = Gemm<transB=1>(x, w)"),
    "scaled": ((7, 33), (33, 50), "a = Exp(w) b = Mul(a, w) y = MatMul(x, b)"),
    "image": ((2, 17, 9, 8), (24, 17, 3, 3), "y = Conv<pads=[1,1,1,1]>(x, w)"),
    "depthwise": ((1, 40, 9, 8), (40, 1, 3, 3), "y = Conv<pads=[1,1,1,1],group=40>(x, w)"),
}


def model_of(values):
    parts, inputs, outputs, weights = [], [], [], []
    for kind, (shape, _, text) in KINDS.items():
        inputs.append(f"float[{','.join(map(str, shape))}] x{kind}")
        words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
        for i in range(LAYERS):
            parts.append(" ".join(f"x{kind}" if word == "x" else f"{word}{kind}{i}" if word in "abwy" else word
                                  for word in words))
            outputs.append(f"float[{','.join(f'd{k}' for k in range(len(shape)))}] y{kind}{i}")
            weights.append(onnx.numpy_helper.from_array(values[f"w{kind}{i}"], f"w{kind}{i}"))
    return part_models.parse(18, parts, inputs, outputs, weights)


def draw(rng):
    values = {}
    for kind, (shape, weight, _) in KINDS.items():
        values[f"x{kind}"] = rng.standard_normal(shape).astype(np.float32)
        values.update({f"w{kind}{i}": rng.standard_normal(weight).astype(np.float32) for i in range(LAYERS)})
    return values


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong}, when one of |labels| is in "folded alike"."""
    if labels and not any(part in "folded alike" for part in labels):
        return {}
    values, path, results = draw(np.random.default_rng(seed)), os.path.join(scratch, "fold.onnx"), {}
    model = model_of(values)
    onnx.save(model, path)
    feeds = {value.name: values[value.name] for value in model.graph.input}
    expected = onnxruntime.InferenceSession(path).run(None, feeds)
    names = [f"{kind} {i}" for kind in KINDS for i in range(LAYERS)]
    for level in LEVELS:
        library = f"{path}-{level}.so"
        o3_model.compile_model(path, library, level, ("--target", "cpu"))
        for threads, part, wrong in part_models.differences(library, feeds, expected, [BOUND] * len(names)):
            results[f"folded alike: {names[part]}, threads={threads}", level] = wrong
    return results
