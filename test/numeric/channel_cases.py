"""Networks with rows and columns of zeros in their weights, at O3, against the float64 evaluation of the same graph:
channels that disappear leave the results as they are.

A row: a label, the weights (name: shape, or name: shape and what they are) and the graph's text without them. Rows of
weights (outputs) and their columns (inputs) are zero with some probability, drawn anew in each run.
"""

import os
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import numeric_job
import o3_model

LEVEL = 3
ROUNDS = 3  # of random zeros for each row

ROWS = [
    ("chain", {"w": (32, 3, 3, 3), "b": (32,), "v": (20, 32, 1, 1), "u": (7, 20, 3, 3), "c": (7,)},
     "x[N,3,9,8] => y", "t = Conv <pads=[1,1,1,1]> (x, w, b) r = Relu(t) s = Conv(r, v) q = Sigmoid(s) y = Conv(q, u, c)"),
    ("padded", {"w": (17, 3, 1, 1), "b": (17,), "v": (9, 17, 3, 3)},
     "x[2,3,6,5] => y", "t = Conv(x, w, b) r = Relu(t) y = Conv <pads=[1,1,1,1]> (r, v)"),
    ("residual", {"w": (24, 24, 3, 3), "b": (24,), "v": (24, 24, 1, 1), "u": (5, 24, 1, 1), "a": (24, 3, 1, 1)},
     "x[N,3,7,7] => y", """h = Conv(x, a) t = Conv <pads=[1,1,1,1]> (h, w, b) r = Relu(t) s = Conv(r, v) z = Add(s, h)
     p = Relu(z) y = Conv(p, u)"""),
    ("normalised", {"w": (16, 4, 3, 3), "g": (16,), "b": (16,), "m": (16,), "s": ((16,), "positive"), "v": (6, 16, 1, 1)},
     "x[N,4,8,8] => y", """t = Conv(x, w) n = BatchNormalization(t, g, b, m, s) r = Relu(n)
     p = AveragePool <kernel_shape=[2,2]> (r) y = Conv(p, v)"""),
    ("depthwise", {"w": (40, 8, 1, 1), "b": (40,), "d": (40, 1, 3, 3), "e": (40,), "v": (8, 40, 1, 1), "lo": ((), 0.0),
                   "hi": ((), 6.0)},
     "x[N,8,9,9] => y", """t = Conv(x, w, b) r = Clip(t, lo, hi) k = Conv <pads=[1,1,1,1], group=40> (r, d, e)
     q = Clip(k, lo, hi) s = Conv(q, v) y = Add(s, x)"""),
    ("groups", {"w": (24, 5, 1, 1), "d": (32, 6, 3, 3), "e": (32,), "v": (4, 32, 1, 1)},
     "x[N,5,8,8] => y", "t = Conv(x, w) r = Relu(t) k = Conv <group=4> (r, d, e) q = Relu(k) y = Conv(q, v)"),
    ("concat", {"w": (32, 4, 1, 1), "b": (32,), "v": (16, 4, 3, 3), "u": (9, 48, 1, 1)},
     "x[N,4,7,6] => y", """s = Conv(x, w, b) t = Conv <pads=[1,1,1,1]> (x, v) c = Concat <axis=1> (s, t) r = Relu(c)
     y = Conv(r, u)"""),
    ("classifier", {"w": (32, 3, 3, 3), "b": (32,), "f": ((10, 32), "matrix"), "c": (10,)},
     "x[N,3,9,9] => y", """t = Conv(x, w, b) r = Relu(t) p = GlobalAveragePool(r) h = Flatten(p)
     y = Gemm <transB=1> (h, f, c)"""),
    ("flattened", {"w": (12, 3, 3, 3), "b": (12,), "f": ((108, 10), "matrix"), "c": (10,)},
     "x[N,3,5,5] => y", "t = Conv(x, w, b) r = Relu(t) h = Flatten(r) y = Gemm(h, f, c)"),
    ("perceptron", {"w": ((24, 64), "matrix"), "b": (64,), "v": ((64, 24), "matrix"), "half": ((), 0.5), "one": ((), 1.0),
                    "root": ((), 1.4142135)},
     "x[B,S,24] => y", """t = MatMul(x, w) s = Add(t, b) d = Div(s, root) e = Erf(d) f = Add(e, one) g = Mul(s, f)
     h = Mul(g, half) z = MatMul(h, v) y = Add(z, x)"""),
    ("squeezed", {"w": (16, 3, 1, 1), "b": (16,), "k": (4, 16, 1, 1), "l": (16, 4, 1, 1), "m": (16,), "v": (5, 16, 1, 1)},
     "x[N,3,8,7] => y", """t = Conv(x, w, b) p = GlobalAveragePool(t) s = Conv(p, k) r = Relu(s) q = Conv(r, l, m)
     g = Sigmoid(q) z = Mul(t, g) y = Conv(z, v)"""),
    ("resized", {"w": (16, 3, 1, 1), "b": (16,), "v": (16, 16, 1, 1), "u": (3, 16, 1, 1), "sc": ((4,), [1., 1., 2., 2.])},
     "x[1,3,6,5] => y", """t = Conv(x, w, b) r = Resize <mode="nearest"> (t, , sc) m = MaxPool <kernel_shape=[3,3]> (r)
     c = Conv(m, v) l = Resize <mode="linear"> (c, , sc) y = Conv(l, u)"""),
    ("enlarged", {"w": (32, 3, 1, 1), "b": (32,), "v": (32, 3, 3, 3), "u": (5, 32, 1, 1), "g": (32, 1, 1),
                  "sc": ((4,), [1., 1., 2., 2.])},
     "x[N,3,H,W] => y", """t = Conv(x, w, b) r = Resize <mode="nearest"> (t, , sc) d = Resize <mode="nearest"> (x, , sc)
     c = Conv <pads=[1,1,1,1]> (d, v) m = Mul(r, g) a = Add(m, c) y = Conv(a, u)"""),
    ("turned", {"w": (16, 3, 1, 1), "b": (16,), "f": ((16, 6), "matrix"), "sh": ((3,), "i64", [0, -1, 16])},
     "x[N,3,4,5] => y", """t = Conv(x, w, b) n = Transpose <perm=[0,2,3,1]> (t) h = Reshape(n, sh) r = Relu(h)
     y = MatMul(r, f)"""),
    ("scaled", {"w": (20, 3, 1, 1), "v": (20, 20, 1, 1), "u": (20, 20, 1, 1), "a": ((), 0.43), "b": ((), -0.08),
                "c": ((), 1.7), "d": ((), 0.16), "e": ((), 0.43), "f": ((), 0.9)},
     "x[N,3,9,7] => y", """t = Conv(x, w) h = HardSwish(t) m = Mul(h, a) n = Add(m, b) o = Conv(n, v) p = HardSwish(o)
     q = Mul(p, c) r = Add(q, d) z = Conv(r, u) k = HardSwish(z) l = Mul(k, e) y = Add(l, f)"""),
    ("output too", {"w": (16, 3, 1, 1), "b": (16,), "v": (16, 16, 1, 1)},
     "x[N,3,4,5] => y, t", "t = Conv(x, w, b) r = Relu(t) s = Conv(r, v) y = Relu(s)"),
    ("softmax", {"w": (16, 3, 1, 1), "b": (16,), "v": (16, 16, 1, 1)},
     "x[N,3,4,5] => y", "t = Conv(x, w, b) r = Softmax <axis=1> (t) y = Conv(r, v)"),
]


def draw(rng, spec, all_dead):
    shape, kind = (spec[0], spec[1]) if spec and isinstance(spec[0], tuple) else (spec, None)
    if isinstance(kind, float):
        return np.float32(kind).reshape(())
    if isinstance(kind, list):
        return np.array(kind, np.float32)
    if kind == "i64":
        return np.array(spec[2], np.int64)
    value = rng.standard_normal(shape).astype(np.float32)
    if kind == "positive":
        return np.abs(value) + np.float32(0.5)
    rows = rng.random(shape[0]) < (1.0 if all_dead else 0.35)
    if len(shape) == 1:
        value[rng.random(shape[0]) < 0.3] = 0
    else:
        value /= np.float32(np.sqrt(np.prod(shape[1:])))
        value[rows] = 0
        value[:, rng.random(shape[1]) < 0.35] = 0
    return value


def model_of(row, rng, all_dead):
    _, weights, signature, body = row
    source, results = signature.split(" => ")
    name, dims = source.rstrip("]").split("[")
    graph = onnx.parser.parse_graph(f"g (float[{dims}] {name}) => ({', '.join('float[] ' + r for r in results.split(', '))}) "
                                    f"{{ {body} }}")
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    dead = rng.choice(list(weights)) if all_dead else None
    for key, spec in weights.items():
        graph.initializer.append(numpy_helper.from_array(np.asarray(draw(rng, spec, key == dead)), key))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    sizes = [int(d) if d.isdigit() else int(rng.integers(1, 4)) for d in dims.split(",")]
    return model, {name: rng.standard_normal(sizes).astype(np.float32)}


def in_double(model):
    """The same graph in float64."""
    double = onnx.ModelProto()
    double.CopyFrom(model)
    for tensor in double.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and tensor.name != "sc":
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float64), tensor.name))
    for value in list(double.graph.input) + list(double.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return double


def check(row, rng, stem, all_dead):
    model, inputs = model_of(row, rng, all_dead)
    wanted = ReferenceEvaluator(in_double(model)).run(None, {k: v.astype(np.float64) for k, v in inputs.items()})
    onnx.save(model, stem + ".onnx")
    library = o3_model.compile_model(stem + ".onnx", stem + ".so", level=LEVEL)
    got = o3_model.Model(library).session(threads=1).run(list(inputs.values()))
    for a, b in zip(got, wanted):
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, atol=2e-5):
            return f"is {np.max(np.abs(a - b)) if a.shape == b.shape else a.shape} off"
    return None


def run(folder, wanted, seed):
    """{(label, level): None or what is wrong}"""
    results = {}
    for row in ROWS:
        label = f"channels: {row[0]}"
        if wanted and not any(part in label for part in wanted):
            continue
        for turn in range(ROUNDS):
            rng = np.random.default_rng([seed, zlib.crc32(row[0].encode()), turn])
            try:
                stem = os.path.join(folder, f"channels-{row[0]}-{turn}".replace(" ", "-"))
                what = check(row, rng, stem, turn == ROUNDS - 1)
            except o3_model.O3Error as error:
                what = str(error)
            results[label, LEVEL] = what and f"{what} (turn {turn}, O3_SEED={seed})"
            if what:
                break
    return results
