"""Winograd convolutions at O3 against the convolution in float64.

All cases are independent parts of one model, which is compiled with static shapes and with symbolic ones, for each
target that this machine runs, and runs with one and two threads. Winograd's sums round differently from the
convolution's own: the largest difference is compared with the largest result, by the bounds of docs/design/layout.md.
"""

import dataclasses
import itertools
import os
import re
import subprocess

import numpy as np
import onnx
import onnx.parser

import o3_model

LEVEL = 3
TARGETS = ("cpu", "x86-64-v3")
NAMED = "x86-64-v3"  # whose choices are those of any machine
THREADS = (1, 2)
# Of the largest result; products of up to 256 channels.
BOUND = 2e-5


@dataclasses.dataclass(frozen=True)
class Case:
    """A 3x3 convolution of N,C,H,W with M outputs, and what follows it."""

    n: int
    c: int
    m: int
    h: int
    w: int
    pads: tuple = (1, 1, 1, 1)
    bias: str = "random"  # or "same", or "" for none
    after: str = ""  # ONNX text that makes y of t, and may read r, of t's shape
    tile: int = 4  # that the compiler must choose for static shapes and NAMED; 0: direct

    def label(self, number):
        return f"winograd {number}: {self.n}x{self.c}x{self.h}x{self.w} to {self.m} pads {self.pads} {self.after}"


RELU, ADD, SIGMOID = "y = Relu(t)", "a = Add(t, r) y = Relu(a)", "y = Sigmoid(t)"
CASES = [
    Case(1, 32, 48, 9, 11, after=RELU),
    Case(2, 20, 17, 8, 8, after=ADD),
    Case(1, 18, 5, 21, 26, after=RELU),  # one block, and half of it
    Case(1, 64, 64, 14, 14, pads=(0, 2, 1, 0), bias=""),
    Case(3, 31, 33, 5, 7, after=SIGMOID),
    Case(1, 16, 16, 4, 4, pads=(0, 0, 0, 0), tile=None),
    Case(1, 64, 32, 61, 59, bias="same", after=ADD),  # several panels of tiles
    Case(2, 48, 16, 3, 64, pads=(2, 0, 0, 3), after=RELU),
    Case(1, 256, 64, 7, 7, after=RELU, tile=None),
    Case(1, 512, 512, 7, 7, after=RELU, tile=2),
    Case(1, 16, 16, 1, 1, tile=0),
    Case(1, 17, 16, 1, 37, tile=None),
]


def reference(case, x, w, b, r):
    x, w = x.astype(np.float64), w.astype(np.float64)
    top, left, bottom, right = case.pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows, columns = x.shape[2] - 2, x.shape[3] - 2
    t = np.zeros((case.n, case.m, rows, columns))
    for i, j in itertools.product(range(3), range(3)):
        t += np.einsum("nchw,mc->nmhw", x[:, :, i:i + rows, j:j + columns], w[:, :, i, j], optimize=True)
    if b is not None:
        t += b.astype(np.float64)[None, :, None, None]
    return {"": lambda: t, RELU: lambda: np.maximum(t, 0), ADD: lambda: np.maximum(t + r, 0),
            SIGMOID: lambda: 1 / (1 + np.exp(-t))}[case.after]()


def data_of(case, rng):
    """x, w, b, r; the last two may be None."""
    x = rng.standard_normal((case.n, case.c, case.h, case.w)).astype(np.float32)
    w = (rng.standard_normal((case.m, case.c, 3, 3)) / np.sqrt(9 * case.c)).astype(np.float32)
    b = {"random": rng.standard_normal(case.m), "same": np.full(case.m, 0.5), "": None}[case.bias]
    size = (case.h + case.pads[0] + case.pads[2] - 2, case.w + case.pads[1] + case.pads[3] - 2)
    r = rng.standard_normal((case.n, case.m, *size)).astype(np.float32) if case.after == ADD else None
    return x, w, None if b is None else b.astype(np.float32), r


def model_of(data, symbolic):
    """A model of all cases, and its inputs."""
    inputs, outputs, nodes, constants, feeds = [], [], [], [], []
    for i, (case, (x, w, b, r)) in enumerate(zip(CASES, data)):
        constants.append(onnx.numpy_helper.from_array(w, f"w{i}"))
        if b is not None:
            constants.append(onnx.numpy_helper.from_array(b, f"b{i}"))
        for name, array in (("x", x), ("r", r)):
            if array is None:
                continue
            sizes = [f"N{i}", array.shape[1], f"{name}H{i}", f"{name}W{i}"] if symbolic else array.shape
            inputs.append(f"float[{','.join(map(str, sizes))}] {name}{i}")
            feeds.append(array)
        conv = f"Conv <pads=[{','.join(map(str, case.pads))}]> (x{i}, w{i}{f', b{i}' if b is not None else ''})"
        after = re.sub(r"\b([yatr])\b", rf"\g<1>{i}", case.after or "y = Identity(t)")
        nodes.append(f"t{i} = {conv} {after}")
        outputs.append(f"float[a{i},b{i},c{i},d{i}] y{i}")
    text = f'<ir_version: 9, opset_import: ["": 17]> g ({", ".join(inputs)}) => ({", ".join(outputs)}) {{ {" ".join(nodes)} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(constants)
    for node in model.graph.node:
        node.name = node.output[0]
    return model, feeds


def chosen_tiles(path, target):
    """The tile of each case, as --explain tells it; 0 for direct convolutions."""
    text = subprocess.run([os.path.join(o3_model.BUILD, "bin", "o3c"), path, f"-O{LEVEL}", "--explain", "--target", target,
                           "--stop-after", "fuse", "-o", path + ".mlir"], capture_output=True, text=True, check=True).stderr
    tiles = [0] * len(CASES)
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        words = rest.split()
        if name.startswith("t") and name[1:].isdigit() and words[:1] == ["winograd"]:
            tiles[int(name[1:])] = int(words[1][0])
    return tiles


def wrong(got, expected):
    scale = max(1, np.abs(expected).max(initial=0))
    error = np.abs(got - expected).max(initial=0)
    return None if got.shape == expected.shape and error <= BOUND * scale else (
        f"error {error:.2e} where results reach {scale:.2f}, shapes {got.shape} and {expected.shape}")


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong}, when one of |labels| is in "winograd"."""
    if labels and not any(part in "winograd" for part in labels):
        return {}
    rng = np.random.default_rng(seed)
    data = [data_of(case, rng) for case in CASES]
    expected = [reference(case, *arrays) for case, arrays in zip(CASES, data)]
    results = {}
    for symbolic, target in itertools.product((False, True), TARGETS):
        model, feeds = model_of(data, symbolic)
        path = os.path.join(scratch, f"winograd-{symbolic}-{target}.onnx")
        onnx.save(model, path)
        o3_model.compile_model(path, path + ".so", LEVEL, ("--target", target))
        tiles = chosen_tiles(path, target) if target == NAMED and not symbolic else [case.tile for case in CASES]
        for threads in THREADS:
            got = o3_model.Model(path + ".so").session(threads=threads).run(feeds)
            for i, case in enumerate(CASES):
                what = wrong(got[i], expected[i])
                if case.tile is not None and tiles[i] != case.tile:
                    what = f"tile {tiles[i]} was chosen, {case.tile} is expected"
                results[f"{case.label(i)}, {'symbolic' if symbolic else 'static'}, {target}, {threads} threads", LEVEL] = what
    return results
