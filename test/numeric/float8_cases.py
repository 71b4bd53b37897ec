"""8-bit floats: conversions of every code, of every half, and of random numbers of other types, to the bit, where
ml_dtypes says what codes are; quantisation by tensor, by axis and by block; ops that move them.

All parts are one model, compiled at O0 and O3.
"""

import os
import subprocess

import ml_dtypes
import numpy as np
import onnx
import onnx.parser

import o3_model

LEVELS = (0, 3)
PRODUCT_BOUND = 1e-6  # of the norm: sums of 80 in float32
FORMATS = {"FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
           "FLOAT8E5M2": ml_dtypes.float8_e5m2, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz}
NUMBERS = {"FLOAT8E4M3FN": 17, "FLOAT8E4M3FNUZ": 18, "FLOAT8E5M2": 19, "FLOAT8E5M2FNUZ": 20}
OTHERS = {"f32": (1, np.float32), "f16": (10, np.float16), "f64": (11, np.float64), "bf16": (16, ml_dtypes.bfloat16),
          "i32": (6, np.int32), "bool": (9, np.bool_)}


def narrow(x, kind, saturate=True):
    """|x| as ONNX casts it: the nearest code, of two the even one. ml_dtypes rounds float64 twice, by way of f32."""
    with np.errstate(all="ignore"):
        wide = np.asarray(x).astype(np.float64)
        codes = np.arange(128, dtype=np.uint8).view(kind).astype(np.float64)
    codes = codes[np.isfinite(codes)]
    ends = np.append(codes, 2 * codes[-1] - codes[-2])  # and the next one, were there more
    size = np.minimum(np.where(np.isnan(wide), 0, np.abs(wide)), ends[-1])
    low = np.minimum(np.searchsorted(ends, size, "right") - 1, len(ends) - 2)
    below, above = size - ends[low], ends[low + 1] - size
    code = low + ((above < below) | ((above == below) & (low % 2 == 1)))
    beyond = code == len(codes)
    value = np.where(beyond, codes[-1] if saturate else np.inf, codes[np.minimum(code, len(codes) - 1)])
    value = np.where(np.isinf(wide) & (not saturate), np.inf, value)
    return np.where(np.isnan(wide), np.nan, np.copysign(value, wide)).astype(kind)


def inputs_of(rng):
    """Numbers of every size and sign, halfway ones among them, and those that f32 rounds to halfway."""
    codes = np.arange(256, dtype=np.uint8)
    values = np.concatenate([codes.view(kind).astype(np.float64) for kind in FORMATS.values()])
    values = np.unique(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    near = np.concatenate([values, middles, middles * (1 + 2.0**-40), middles * (1 - 2.0**-40)])
    patterns = rng.integers(0, 2**32, 4096, np.uint64).astype(np.uint32).view(np.float32)
    around = (rng.standard_normal(2048) * 2.0**rng.integers(-20, 20, 2048))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return {"f64": np.concatenate([near, around, special]),
            "f32": np.concatenate([near.astype(np.float32), around.astype(np.float32), patterns, special.astype(np.float32)]),
            "f16": np.arange(65536, dtype=np.uint16).view(np.float16),
            "bf16": np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16),
            "i32": np.concatenate([np.arange(-500, 500), rng.integers(-2**31, 2**31 - 1, 500)]).astype(np.int32),
            "bool": np.array([False, True])}


class Parts:
    """Nodes with their inputs, and what each output is to be."""

    def __init__(self):
        self.nodes, self.feeds, self.expected, self.constants = [], {}, {}, {}

    def feed(self, name, array):
        self.feeds[name] = array
        return name

    def constant(self, name, array):
        self.constants[name] = array
        return name

    def add(self, op, inputs, name, want, **attributes):
        """A product's |want| is in float64, and its result float32."""
        self.nodes.append(onnx.helper.make_node(op, inputs, [name], name=name, **attributes))
        self.expected[name] = want.astype(np.float32) if op == "MatMul" else want

    def model(self):
        def info(name, array):
            return onnx.helper.make_tensor_value_info(name, o3_model.NUMBERS[array.dtype], array.shape)

        graph = onnx.helper.make_graph(self.nodes, "float8", [info(*item) for item in self.feeds.items()],
                                       [info(*item) for item in self.expected.items()])
        for name, array in self.constants.items():
            graph.initializer.append(onnx.helper.make_tensor(name, o3_model.NUMBERS[array.dtype], array.shape,
                                                             array.tobytes(), raw=True))
        return onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21)])


def add_casts(parts, name, kind):
    codes = parts.feed(f"{name}_codes", np.arange(256, dtype=np.uint8).view(kind))
    for other, (number, dtype) in OTHERS.items():
        wide = parts.feeds[codes].astype(np.float32)
        if other != "i32" or not np.isinf(wide).any():  # NaN becomes 0, infinity is nobody's rule
            wide = np.nan_to_num(wide) if other == "i32" else wide
            parts.add("Cast", [codes], f"{name}_{other}", wide.astype(dtype), to=number)
        for saturate in (1, 0) if other not in ("i32", "bool") else (1,):
            want = narrow(parts.feeds[other], kind, bool(saturate))
            parts.add("Cast", [other], f"{other}_{saturate}_{name}", want, to=NUMBERS[name], saturate=saturate)
    for target, to in FORMATS.items():
        if target != name:
            parts.add("Cast", [codes], f"{name}_{target}", narrow(parts.feeds[codes], to), to=NUMBERS[target])


def add_quantised(parts, name, kind, rng):
    x = parts.feed(f"{name}_x", (rng.standard_normal((7, 36)) * 100).astype(np.float32))
    scales = {"tensor": ((), {}), "axis": ((36,), {"axis": 1}), "block": ((7, 5), {"axis": 1, "block_size": 8})}
    for way, (shape, attributes) in scales.items():
        scale = np.exp2(rng.uniform(-3, 3, shape)).astype(np.float32)
        wide = scale.repeat(8, 1)[:, :36] if way == "block" else scale
        zero = parts.constant(f"{name}_{way}_zero", np.zeros(shape, kind))
        given = parts.constant(f"{name}_{way}_scale", scale)
        quantised = narrow(parts.feeds[x] / wide, kind)
        parts.add("QuantizeLinear", [x, given, zero], f"{name}_{way}_q", quantised, **attributes)
        parts.add("DequantizeLinear", [f"{name}_{way}_q", given, zero], f"{name}_{way}_dq",
                  (quantised.astype(np.float32) * wide).astype(np.float32), **attributes)


def add_moves(parts, name, kind, rng):
    bits = rng.integers(0, 256, (6, 35)).astype(np.uint8).view(kind)
    x, w = parts.feed(f"{name}_moved", bits), parts.constant(f"{name}_weight", bits[:, ::-1].copy())
    shape = parts.constant(f"{name}_shape", np.array([5, 42]))
    parts.add("Transpose", [x], f"{name}_transposed", bits.T.copy(), perm=[1, 0])
    parts.add("Reshape", [x, shape], f"{name}_reshaped", bits.reshape(5, 42))
    parts.add("Transpose", [w], f"{name}_constant", bits[:, ::-1].T.copy(), perm=[1, 0])
    sizes = parts.constant(f"{name}_sizes", np.array([3, 5]))
    value = onnx.helper.make_tensor("value", NUMBERS[name], [1], bits[:1, :1].tobytes(), raw=True)
    parts.add("ConstantOfShape", [sizes], f"{name}_filled", np.broadcast_to(bits[:1, :1], (3, 5)), value=value)


def exact(x):
    return x.astype(np.float64)


def add_products(parts, rng):
    """Quantised and dequantised factors: a scale of the tensor, of columns, of rows of a transposed B, and FNUZ ones."""
    m, k, n = 13, 80, 24
    kind, other = FORMATS["FLOAT8E4M3FN"], FORMATS["FLOAT8E5M2FNUZ"]
    codes = parts.feed("product_codes", narrow(rng.standard_normal((2, m, k)), kind))
    rows = parts.feed("product_rows", narrow(rng.standard_normal((n, k)), kind))
    scale, columns = np.float32(0.37), np.exp2(rng.uniform(-2, 2, n)).astype(np.float32)
    one, many = parts.constant("product_one", np.array(scale)), parts.constant("product_many", columns)
    values = {name: narrow(rng.standard_normal((k, n)) * 2, it) for name, it in (("w", kind), ("z", other))}
    a = exact(parts.feeds[codes]) * scale
    parts.nodes += [onnx.helper.make_node("DequantizeLinear", [codes, one], ["product_a"], name="product_a"),
                    onnx.helper.make_node("DequantizeLinear", [rows, many], ["product_r"], name="product_r", axis=0),
                    onnx.helper.make_node("Transpose", ["product_r"], ["product_rt"], name="product_rt", perm=[1, 0])]
    for name, w in values.items():
        given = parts.constant(f"product_{name}", w)
        parts.nodes.append(onnx.helper.make_node("DequantizeLinear", [given, many], [f"product_d{name}"], name=f"product_d{name}",
                                                 axis=1))
        parts.add("MatMul", ["product_a", f"product_d{name}"], f"product_y{name}", a @ (exact(w) * columns))
    parts.add("MatMul", ["product_a", "product_rt"], "product_yr", a @ (exact(parts.feeds[rows]) * columns[:, None]).T)


def build(rng):
    parts = Parts()
    for name, array in inputs_of(rng).items():
        parts.feed(name, array)
    for name, kind in FORMATS.items():
        add_casts(parts, name, kind)
        add_quantised(parts, name, kind, rng)
        add_moves(parts, name, kind, rng)
    add_products(parts, rng)
    return parts


def difference(name, got, want):
    """To the bit, but for NaN, which is NaN, and for products."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} came, {want.dtype}{list(want.shape)} was expected"
    with np.errstate(all="ignore"):
        a, b = (x.astype(np.float64).reshape(-1) for x in (got, want))
    if name.startswith("product_"):
        error = np.linalg.norm(a - b) / np.linalg.norm(b)
        return None if error <= PRODUCT_BOUND else f"error {error:.2e}"
    bad = ~((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return None
    first = int(np.argmax(bad))
    return f"{int(bad.sum())} of {bad.size} differ; number {first}: {a[first]!r} came, {b[first]!r} was expected"


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong}, when one of |labels| is in "float8"."""
    if labels and not any(part in "float8" for part in labels):
        return {}
    parts, results = build(np.random.default_rng(seed)), {}
    path = os.path.join(scratch, "float8.onnx")
    onnx.save(parts.model(), path)
    for level in LEVELS:
        o3_model.compile_model(path, f"{path}.{level}.so", level)
        library = o3_model.Model(f"{path}.{level}.so")
        got = dict(zip([name for name, _, _ in library.outputs], library.session(threads=1).run_named(parts.feeds)))
        for name, want in parts.expected.items():
            results[f"float8: {name}", level] = difference(name, got[name], want)
    results.update(run_card(path, parts))
    return results


def run_card(path, parts):
    """What a card with products of 8-bit floats is given, computed by a processor."""
    level, dumps = 3, path + ".dumps"
    command = [os.path.join(o3_model.BUILD, "bin", "o3c"), path, f"-O{level}", "--target", "hopper", "--dump-dir", dumps,
               "--stop-after", "lower", "--quiet"]
    subprocess.run(command, check=True)
    lowered = os.path.join(dumps, next(name for name in os.listdir(dumps) if name.endswith("-lower.mlir")))
    with open(lowered, encoding="utf-8") as file:
        marks = file.read().count("o3.float8 = f8E4M3FN")
    o3_model.compile_model(lowered, path + ".card.so", 1, ("--target", "x86-64-v3", "--start-from", "fuse"))
    library = o3_model.Model(path + ".card.so")
    got = dict(zip([name for name, _, _ in library.outputs], library.session(threads=1).run_named(parts.feeds)))
    results = {(f"float8 on cards: {name}", level): difference(name, got[name], want)
               for name, want in parts.expected.items() if name.startswith("product_")}
    results["float8 on cards: marks", level] = None if marks else "no product is marked as one of 8-bit floats"
    return results
