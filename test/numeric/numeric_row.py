"""The language of the tables rows_*.py: a row is an op, its inputs, the sizes and the types that it is tried with.

    R("Add", ["A,B", "B"], ELEMENTWISE, FLOATS + INTS, np.add)
    R("Conv", ["N,8,H,W", W("16,8,3,3")], [(1, 9, 9), (2, 7, 8)], F32, pads=[1, 1, 1, 1])

Inputs: "A,B" is a tensor of random data whose dimensions are symbols or numbers; T(dims, data, dtype) says more,
W is a constant of the model with random contents, C one with given contents.
Sizes: a tuple for each trial, values for the symbols in the order in which they first appear.
Each row becomes, for every dtype, a model of static shapes for some of the sizes and one model with symbolic
dimensions that is run at all of them. Keywords are the node's attributes; those that begin with an underscore
belong to the row: _tol (factor on the tolerances), _terms (how many are summed, from the sizes), _opset, _outputs
(how many), _symbolic=False (the op needs static shapes), _static=False (only the symbolic model is made).
Instead of an op type, ONNX's text of nodes may stand, which reads x0, x1, ... and writes y0, ...:
    R("t = Conv(x0, x1) y0 = Relu(t)", ...)
The reference is the last argument, a function on NumPy arrays (floats come as float64, others in their own
type); without one it is ONNX Runtime, and where that lacks the op, ONNX's reference evaluator.
"""

import dataclasses
import re
import zlib

import ml_dtypes
import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8,
          "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
          "u64": np.uint64, "bool": np.bool_}
F32 = ["f32"]
FLOATS = ["f32", "f64", "f16", "bf16"]
HALVES = ["f16", "bf16"]
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
INTS = SIGNED + UNSIGNED
BOOL = ["bool"]
ALL = FLOATS + INTS + BOOL
SOME = ["f32", "f16", "i64", "u8", "bool"]  # one of each kind and width: for ops that only move data

# |got - expected| <= atol + rtol * |expected|; other types are exact.
TOLERANCES = {"f32": (2e-6, 1e-6), "f64": (1e-13, 1e-13), "f16": (2e-3, 1e-3), "bf16": (1.6e-2, 8e-3)}

# Sizes for two symbols of an elementwise op: ones, primes, around vectors and tiles, none.
ELEMENTWISE = [(7, 31), (1, 1), (3, 64), (5, 65), (2, 63), (33, 1), (0, 4), (4, 0)]
VECTOR = [(1,), (7,), (63,), (64,), (65,), (1021,), (0,)]
MATRIX = [(7, 13, 11), (1, 1, 1), (31, 32, 33), (64, 64, 64), (65, 63, 66), (16, 1, 17), (1, 128, 5), (0, 5, 4),
          (4, 0, 5), (4, 5, 0)]
IMAGE = [(1, 7, 9), (2, 8, 8), (1, 15, 16), (3, 17, 33), (0, 8, 8)]  # N, H, W
IMAGE_CHANNELS = [(2, 3, 7, 9), (1, 1, 8, 8), (1, 16, 15, 16), (2, 17, 9, 5), (0, 3, 8, 8)]  # N, C, H, W


def is_float(dtype):
    return dtype in TOLERANCES


@dataclasses.dataclass(frozen=True)
class T:
    """An input: dims "A,B,3" ("" is a scalar); data: a name of DATA; dtype: one of DTYPES, or None: the row's."""

    dims: str
    data: str = "normal"
    dtype: str = None
    constant: bool = False

    def names(self):
        return [dim for dim in self.dims.split(",") if dim]

    def label(self):
        text = f"{'w' if self.constant else ''}[{self.dims}]"
        return ":".join([text, *([self.data] if self.data != "normal" else []), *([self.dtype] if self.dtype else [])])


def W(dims, data="normal", dtype=None):
    return T(dims, data, dtype, constant=True)


@dataclasses.dataclass(frozen=True)
class C:
    """A constant with these contents, int64 where no dtype is given."""

    values: object
    dtype: str = "i64"

    def array(self):
        return np.array(self.values, DTYPES[self.dtype])

    def label(self):
        return f"{self.dtype}{str(self.values).replace(' ', '')}"


NONE = None  # an input that is left out


@dataclasses.dataclass
class Row:
    op: str
    inputs: list
    sizes: list
    dtypes: list
    ref: object
    attrs: dict
    options: dict
    source: str = ""

    def symbols(self):
        found = [name for item in self.inputs if isinstance(item, T) for name in item.names() if not name.isdigit()]
        return list(dict.fromkeys(found))

    def option(self, name, default):
        return self.options.get(name, default)

    def statements(self):
        """The row's nodes as ONNX text."""
        if "=" in self.op:
            return self.op
        outputs = ", ".join(f"y{i}" for i in range(self.option("outputs", 1)))
        inputs = ", ".join("" if item is NONE else f"x{i}" for i, item in enumerate(self.inputs))
        return f"{outputs} = {self.op} ({inputs})"

    def label(self):
        attrs = " ".join(f"{key}={str(value).replace(' ', '')}" for key, value in self.attrs.items())
        inputs = " ".join("-" if item is NONE else item.label() for item in self.inputs)
        opset = f"opset={self.options['opset']}" if "opset" in self.options else ""
        return " ".join(filter(None, (" ".join(self.op.split()), inputs, attrs, opset)))


OPTIONS = {"tol", "terms", "opset", "outputs", "symbolic", "static"}
TABLE = []


def R(op, inputs, sizes, dtypes, ref=None, **keywords):
    """Adds a row."""
    options = {key[1:]: value for key, value in keywords.items() if key.startswith("_")}
    if set(options) - OPTIONS:
        raise ValueError(f"row {op}: unknown option {set(options) - OPTIONS}")
    attrs = {key: value for key, value in keywords.items() if not key.startswith("_")}
    inputs = [T(item) if isinstance(item, str) else item for item in inputs]
    row = Row(op, inputs, sizes, dtypes, ref, attrs, options)
    for values in sizes:
        if len(values) != len(row.symbols()):
            raise ValueError(f"row {row.label()}: sizes {values} for the symbols {row.symbols()}")
    TABLE.append(row)


# ---- Data ----

def ints(rng, shape, dtype, low, high):
    info = np.iinfo(dtype)
    return rng.integers(max(low, info.min), min(high, info.max), shape, np.int64, endpoint=True).astype(dtype)


def normal(rng, shape, dtype):
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if np.issubdtype(dtype, np.integer):
        return ints(rng, shape, dtype, -9, 9)
    return rng.standard_normal(shape).astype(dtype)


def between(low, high):
    def make(rng, shape, dtype):
        if np.issubdtype(dtype, np.integer):
            return ints(rng, shape, dtype, int(low), int(high))
        return rng.uniform(low, high, shape).astype(dtype)

    return make


def nonzero(rng, shape, dtype):
    values = ints(rng, shape, np.int64, 1, 9)
    if np.issubdtype(dtype, np.unsignedinteger):
        return values.astype(dtype)
    return (values * rng.choice([-1, 1], shape)).astype(dtype)


def extremes(rng, shape, dtype):
    """All values of an integer type, its ends among them."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    flat = values.reshape(-1)
    flat[:3] = np.array([info.min, info.max, 0], dtype)[:flat.size]
    return flat.reshape(shape)


def special(rng, shape, dtype):
    """Floats that are easily got wrong."""
    limits = ml_dtypes.finfo(dtype)
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, float(limits.max),
                       float(limits.min), float(limits.tiny), -float(limits.tiny), 1e-4, -20.0, 20.0, 88.0, -88.0])
    return np.resize(rng.permutation(values), shape).astype(dtype)


def distinct(rng, shape, dtype):
    """Values that are all different: for arguments of maxima and for sorting."""
    count = int(np.prod(shape, dtype=np.int64))
    return (rng.permutation(count) - count // 2).reshape(shape).astype(dtype)


DATA = {"normal": normal, "positive": between(0.1, 4), "unit": between(-0.95, 0.95), "above1": between(1.05, 5),
        "small": between(-2, 2), "wide": between(-30, 30), "nonzero": nonzero, "extremes": extremes,
        "special": special, "distinct": distinct, "bit": between(0, 7),
        "class": between(0, 4)}


def index_data(rng, shape, dtype, size):
    """Indices into |size| elements, negative ones among them."""
    return rng.integers(-size, size, shape).astype(dtype) if size else np.zeros(shape, dtype)


# ---- Points: a row with a dtype, and either one size or all ----

@dataclasses.dataclass
class Point:
    row: Row
    dtype: str
    sizes: list  # of tuples
    symbolic: bool

    def label(self):
        return f"{self.row.label()} {self.dtype} {'symbolic' if self.symbolic else self.sizes[0]}"

    def input_dtype(self, item):
        return item.dtype or self.dtype

    def shape(self, item, values):
        known = dict(zip(self.row.symbols(), values))
        return tuple(int(name) if name.isdigit() else known[name] for name in item.names())

    def declared(self, item):
        """The shape that the model states."""
        if not self.symbolic:
            return self.shape(item, self.sizes[0])
        return tuple(int(name) if name.isdigit() else name for name in item.names())

    def array(self, number, item, values, seed):
        if isinstance(item, C):
            return item.array()
        where = "constant" if item.constant else values
        rng = np.random.default_rng([seed, zlib.crc32(f"{self.row.label()} {self.dtype} {number} {where}".encode())])
        shape, dtype = self.shape(item, values), np.dtype(DTYPES[self.input_dtype(item)])
        index = re.fullmatch(r"index (\w+)", item.data)
        if index:
            size = int(index[1]) if index[1].isdigit() else dict(zip(self.row.symbols(), values))[index[1]]
            return index_data(rng, shape, dtype, size)
        return np.asarray(DATA[item.data](rng, shape, dtype.type)).astype(dtype).reshape(shape)

    def arrays(self, values, seed):
        """An array for each input, None for those left out."""
        return [None if item is NONE else self.array(i, item, values, seed) for i, item in enumerate(self.row.inputs)]


def is_constant(item):
    return isinstance(item, C) or (isinstance(item, T) and item.constant)


def points_of(row):
    """Static ones for at most four of the sizes, and a symbolic one when there are symbols."""
    found = []
    for dtype in row.dtypes:
        sizes = row.sizes or [()]
        few = sizes if len(sizes) <= 4 else [sizes[0], sizes[1], sizes[len(sizes) // 2], sizes[-1]]
        if row.option("static", True):
            found += [Point(row, dtype, [values], False) for values in few]
        if row.symbols() and row.option("symbolic", True):
            found.append(Point(row, dtype, sizes, True))
    return found
