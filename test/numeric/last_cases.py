"""Channels last, as cards with warpgroup products have them in half precision: what the layout pass and the lowering
make for such a card, computed by a processor, against ONNX Runtime in float32.

All parts are one model; random weights have the variance that keeps results near one, and the measure is the error's
norm over the result's. Kernels of the card itself are checked there (test/gpu).
"""

import os
import subprocess

import numpy as np
import onnx
import onnx.parser
import onnxruntime

import o3_model

LEVEL = 3
# A few roundings to half precision, of 2**-11 each; what may be tf32 on the card is f32 on a processor.
BOUNDS = {"fp16": 2e-3, "tf32": 1e-5}
# Shapes of weights, whose names end in _w; those of other constants; and of inputs.
PARTS = """
s = Conv<strides=[2,2],pads=[3,3,3,3]>(a, a1_w, a1_b)   sr = Relu(s)
p = MaxPool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]>(sr)
c = Conv<pads=[1,1,1,1]>(p, a2_w, a2_b)   cr = Relu(c)   d = Conv(cr, a3_w)   e = Add(d, p)   f = Relu(e)
g = GlobalAveragePool(f)   ya = Flatten(g)   yb = Conv<strides=[2,2]>(f, a4_w)
h = Conv(b, b1_w, b1_b)   hs = HardSwish(h)   k = Conv<group=48,strides=[2,1],pads=[1,1,1,1]>(hs, b2_w, b2_b)
kr = Relu(k)   k1 = Conv<pads=[1,2,1,2]>(kr, b3_w, b3_b)   l = Concat<axis=1>(k1, kr)   lr = Relu(l)
yc = Conv<dilations=[2,1],pads=[2,0,4,1]>(lr, b4_w)
m, n = Split<axis=1,num_outputs=2>(kr)   o = Conv<pads=[1,1,1,1]>(m, b5_w)   yd = Mul(o, n)
u = Conv<strides=[2,2],pads=[1,1,1,1]>(n, s1_w, s1_b)   ys = Relu(u)
q = Conv<pads=[2,2]>(i, i1_w, i1_b)   yi = Relu(q)
t = Conv<group=4,strides=[1,2],pads=[1,1,1,1]>(b, g1_w, g1_b)   tr = Relu(t)   yg = Conv<group=8>(tr, g2_w)
"""
SHAPES = {"a": (2, 3, 19, 23), "a1_w": (20, 3, 7, 7), "a1_b": (20,), "a2_w": (30, 20, 3, 3), "a2_b": (30,),
          "a3_w": (20, 30, 1, 1), "a4_w": (7, 20, 1, 1), "b": (3, 16, 9, 11), "b1_w": (48, 16, 1, 1), "b1_b": (48,),
          "b2_w": (48, 1, 3, 3), "b2_b": (48,), "b3_w": (40, 48, 3, 5), "b3_b": (40,), "b4_w": (24, 88, 5, 3),
          "b5_w": (24, 24, 3, 3), "i": (1, 24, 33), "i1_w": (40, 24, 5), "i1_b": (40,),
          "g1_w": (24, 4, 3, 3), "g1_b": (24,), "g2_w": (40, 3, 1, 1),
          "s1_w": (16, 24, 3, 3), "s1_b": (16,)}
INPUTS, OUTPUTS = ("a", "b", "i"), ("ya", "yb", "yc", "yd", "yi", "yg", "ys")


def model_of(rng):
    values = {name: (rng.standard_normal(shape) / (np.sqrt(np.prod(shape[1:])) if name.endswith("_w") else 1)).astype(
        np.float32) for name, shape in SHAPES.items()}
    inputs = ", ".join(f"float[{','.join(map(str, SHAPES[name]))}] {name}" for name in INPUTS)
    ranks = {"ya": "n,c", "yi": "n,c,w"}
    outputs = ", ".join(f"float[{','.join(f'{name}{d}' for d in ranks.get(name, 'n,c,h,w').split(','))}] {name}"
                        for name in OUTPUTS)
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 18]> g ({inputs}) => ({outputs}) {{ {" ".join(PARTS.split())} }}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in values.items()
                                   if name not in INPUTS)
    for node in model.graph.node:
        node.name = node.output[0]
    return model, {name: values[name] for name in INPUTS}


def compile_parts(path, precision):
    """The card's linalg, compiled for a processor."""
    dumps = f"{path}.{precision}.dumps"
    command = [os.path.join(o3_model.BUILD, "bin", "o3c"), path, f"-O{LEVEL}", "--target", "hopper", "--precision", precision,
               "--dump-dir", dumps, "--stop-after", "lower", "--quiet"]
    subprocess.run(command, check=True)
    lowered = next(name for name in os.listdir(dumps) if name.endswith("-lower.mlir"))
    with open(os.path.join(dumps, lowered), encoding="utf-8") as file:
        text = file.read()
    o3_model.compile_model(os.path.join(dumps, lowered), f"{path}.{precision}.so", 1, ("--target", "x86-64-v3", "--start-from", "fuse"))
    return text


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong}, when one of |labels| is in "channels last"."""
    if labels and not any(part in "channels last" for part in labels):
        return {}
    model, feeds = model_of(np.random.default_rng(seed))
    path = os.path.join(scratch, "last.onnx")
    onnx.save(model, path)
    expected = onnxruntime.InferenceSession(path).run(OUTPUTS, feeds)
    results = {}
    for precision, bound in BOUNDS.items():
        text = compile_parts(path, precision)
        marked = text.count('"pool"') == 1 and '"pack_last"' in text
        results[f"channels last: marks {precision}", LEVEL] = None if marked else "no kernel is marked as on channels last"
        library = o3_model.Model(f"{path}.{precision}.so")
        got = dict(zip([name for name, _, _ in library.outputs], library.session(threads=1).run_named(feeds)))
        for name, want in zip(OUTPUTS, expected):
            error = np.linalg.norm(got[name] - want) / np.linalg.norm(want)
            results[f"channels last: {name} {precision}", LEVEL] = None if error <= bound else f"error {error:.2e}"
    return results
