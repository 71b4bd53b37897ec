#!/usr/bin/env python3
"""Sparse layers, one at a time: what a format takes against the dense kernel of the same layer.

    bench/sparse_layers.py compile DIR [--set NAME]     the models and libraries, of 40 random layers or calibration's
    bench/sparse_layers.py measure DIR [--threads N]    their times, dense and sparse

Measuring wants a machine that does nothing else. Dense and sparse runs alternate; each is the median of its turn, the
ratio that of all turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("O3_BUILD", os.path.join(ROOT, "build"))
sys.path.insert(0, os.path.join(ROOT, "test", "numeric"))
TURNS, RUNS = 2, 15


class Layer:
    """A product: |kind| conv (outputs, inputs, kernel, size of the image, stride) or matmul (outputs, inputs, rows)."""

    def __init__(self, name, kind, sizes, block, zeros, formats):
        self.name, self.kind, self.sizes, self.block, self.zeros, self.formats = name, kind, sizes, block, zeros, formats

    def text(self):
        if self.kind == "conv":
            m, c, k, image, stride = self.sizes
            return f"conv {c}-{m} {k}x{k} at {image}" + (f" /{stride}" if stride > 1 else "")
        return f"matmul {self.sizes[2]}x{self.sizes[1]}x{self.sizes[0]}"

    def weight(self, rng):
        shape = self.sizes[:2] + (self.sizes[2],) * 2 if self.kind == "conv" else self.sizes[:2]
        weight = rng.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(np.prod(shape[1:])))
        counts = [-(-size // step) for size, step in zip(shape, self.block)]
        kept = rng.random((*counts, *shape[2:])) >= self.zeros
        for axis, step in enumerate(self.block):
            kept = np.repeat(kept, step, axis)
        return weight * kept[:shape[0], :shape[1]]

    def model(self, rng):
        weight = self.weight(rng)
        if self.kind == "conv":
            m, c, k, image, stride = self.sizes
            shape = (1, c, image, image)
            nodes = [helper.make_node("Conv", ["x", "w", "b"], ["t"], name="layer", pads=[k // 2] * 4, strides=[stride] * 2)]
        else:
            m, c, rows = self.sizes
            shape, weight = (rows, c), np.ascontiguousarray(weight.T)
            nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="layer"), helper.make_node("Add", ["p", "b"], ["t"])]
        nodes.append(helper.make_node("Relu", ["t"], ["y"]))
        bias = rng.standard_normal(m).astype(np.float32)
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def calibration():
    shapes = [("conv", (256, 64, 1, 56, 1)), ("conv", (64, 64, 3, 56, 1)), ("conv", (256, 256, 3, 14, 1)),
              ("conv", (2048, 512, 1, 7, 1)), ("matmul", (768, 768, 128))]
    blocks = [(16, 16), (16, 1), (8, 8), (8, 1), (4, 4)]
    layers = []
    for kind, sizes in shapes:
        for block in blocks:
            for zeros in (0.0, 0.8):
                name = f"{kind}-{'x'.join(map(str, sizes))}-{block[0]}x{block[1]}-{int(zeros * 100)}"
                layers.append(Layer(name, kind, sizes, block, zeros or 0.001, [f"bsr-{block[0]}x{block[1]}"]))
    return layers


def random_layers(count=40, seed=7):
    rng = np.random.default_rng(seed)
    layers = []
    for number in range(count):
        if number % 4 == 3:
            kind, sizes = "matmul", (int(rng.choice([64, 200, 768, 1000])), int(rng.choice([63, 256, 768])),
                                     int(rng.choice([1, 16, 49, 128, 384])))
        else:
            k = int(rng.choice([1, 1, 3]))
            channels = [16, 24, 64, 96, 128, 250] if k > 1 else [16, 40, 64, 96, 256, 500]
            kind, sizes = "conv", (int(rng.choice(channels)), int(rng.choice(channels)), k, int(rng.choice([7, 14, 28, 56])),
                                   int(rng.choice([1, 1, 2])))
        block = [(1, 1), (4, 4), (8, 8), (16, 1), (16, 16), (32, 32), (1, 16)][int(rng.integers(7))]
        zeros = float(rng.choice([0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]))
        layers.append(Layer(f"{number:02d}", kind, sizes, block, zeros, ["auto"]))
    return layers


SETS = {"random": random_layers, "calibration": calibration}


def compile_all(folder, layers):
    os.makedirs(folder, exist_ok=True)
    for number, layer in enumerate(layers):
        path = os.path.join(folder, f"{layer.name}.onnx")
        onnx.save(layer.model(np.random.default_rng([11, number])), path)
        for name in ["dense", *layer.formats]:
            stem = os.path.join(folder, f"{layer.name}-{name}")
            subprocess.run([os.path.join(BUILD, "bin", "o3c"), path, "-O3", "--sparse-format", name, "-q", "-o", stem + ".so",
                            *(["--report", stem + ".json"] if name == "auto" else [])], check=True)


def median_ms(library, threads):
    ended = subprocess.run([os.path.join(BUILD, "bin", "o3-run"), library, "--random", "1", f"--bench={RUNS}", "--warmup", "5",
                            "-j", str(threads), "--json"], check=True, capture_output=True, text=True)
    return json.loads(ended.stdout)["sets"][0]["bench"]["median_ms"]


def measure_all(folder, layers, threads):
    """[(layer, format, dense ms, sparse ms)]"""
    rows = []
    for layer in layers:
        stem = os.path.join(folder, layer.name)
        for name in layer.formats:
            turns = [(median_ms(f"{stem}-dense.so", threads), median_ms(f"{stem}-{name}.so", threads))
                     for _ in range(TURNS)]
            rows.append((layer, name, statistics.median(t[0] for t in turns), statistics.median(t[1] for t in turns)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["compile", "measure"])
    parser.add_argument("folder")
    parser.add_argument("--set", choices=SETS, default="random")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    layers = SETS[options.set]()
    if options.action == "compile":
        return compile_all(options.folder, layers)
    for layer, name, dense, sparse in measure_all(options.folder, layers, options.threads):
        print(f"{layer.name:34s} {layer.text():28s} {name:10s} {dense:8.4f} {sparse:8.4f} {dense / sparse:6.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
