"""Rows that ask for the next one while they are computed, at O3, against ONNX Runtime: caches are said to be so small that
all rows do. One thread and two; the first dimension is known or a symbol.

All cases are independent parts of one model.
"""

import os

import numpy as np
import onnx
import onnxruntime

import o3_model
import part_models

LEVEL = 3
# The next row goes to the second-level cache, or to the first one.
HARDWARE = {level: f'{{"kind": "cpu", "cores": 2, "l1_bytes": {l1}, "l2_bytes": 65536}}' for level, l1 in ((2, 4096), (1, 1 << 20))}
BOUND = 2e-5
# Shape of x, and what is computed of it; s and t are vectors of a row, z is as large as x.
CASES = {
    "whole blocks": ((65, 512), "y = Softmax<axis=-1>(x)"),
    "a block and a rest": ((91, 501), "y = Softmax<axis=-1>(x)"),
    "one block": ((127, 256), "y = Softmax<axis=-1>(x)"),
    "two dimensions of rows": ((7, 13, 300), "y = Softmax<axis=-1>(x)"),
    "the rows are columns": ((3, 290, 33), "y = Softmax<axis=1>(x)"),
    "two operands": ((70, 777), "u = Add(x, z) y = Softmax<axis=-1>(u)"),
    "a logarithm": ((67, 600), "y = LogSoftmax<axis=-1>(x)"),
    "LayerNorm and GELU": ((59, 700), "u = LayerNormalization<axis=-1>(x, s, t) y = Gelu(u)"),
    "a number of each row": ((61, 640), "u = Constant<value_ints=[-1]>() y = ReduceLogSumExp(x, u)"),
    "a single row": ((1, 20000), "y = Softmax<axis=-1>(x)"),
}


def model_of(values, symbolic):
    parts, inputs, outputs, weights = [], [], [], []
    for i, (shape, text) in enumerate(CASES.values()):
        words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
        parts.append(" ".join(f"{word}{i}" if word in "xyzstu" else word for word in words))
        sizes = ",".join(map(str, [f"n{i}" if symbolic else shape[0], *shape[1:]]))
        inputs += [f"float[{sizes}] {name}{i}" for name in "xz" if name in words]
        outputs.append(f"float[{sizes[:sizes.rindex(',')] + ',1' if 'ReduceLogSumExp' in words else sizes}] y{i}")
        weights += [onnx.numpy_helper.from_array(values[f"{name}{i}"], f"{name}{i}") for name in "st" if name in words]
    return part_models.parse(20, parts, inputs, outputs, weights)


def draw(rng):
    values = {}
    for i, (shape, _) in enumerate(CASES.values()):
        values.update({f"{name}{i}": rng.standard_normal(shape).astype(np.float32) * 3 for name in "xz"})
        values.update({f"{name}{i}": rng.standard_normal(shape[-1]).astype(np.float32) for name in "st"})
    return values


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong}, when one of |labels| is in "ahead"."""
    if labels and not any(part in "ahead" for part in labels):
        return {}
    values, names = draw(np.random.default_rng(seed)), list(CASES)
    path, hardware, results = os.path.join(scratch, "ahead.onnx"), os.path.join(scratch, "ahead.json"), {}
    for sizes in ("known", "symbolic"):
        model = model_of(values, sizes == "symbolic")
        onnx.save(model, path)
        feeds = {value.name: values[value.name] for value in model.graph.input}
        expected = onnxruntime.InferenceSession(path).run(None, feeds)
        for level, text in HARDWARE.items():
            with open(hardware, "w", encoding="utf-8") as file:
                file.write(text)
            library = f"{path}-{sizes}-{level}.so"
            o3_model.compile_model(path, library, LEVEL, ("--target", "cpu", "--hardware", hardware))
            for threads, i, what in part_models.differences(library, feeds, expected, [BOUND] * len(CASES)):
                results[f"ahead {names[i]}, {sizes} sizes, cache {level}, {threads} threads", LEVEL] = what
    return results
