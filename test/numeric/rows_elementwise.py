"""Elementwise ops."""

import math

import numpy as np

from numeric_row import (ALL, BOOL, ELEMENTWISE, F32, FLOATS, HALVES, INTS, NONE, SIGNED, UNSIGNED, VECTOR, C, R, T)

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def divide(a, b):
    if np.issubdtype(a.dtype, np.floating):
        return a / b
    return np.trunc(a.astype(np.float64) / b.astype(np.float64)).astype(a.dtype)


def shift(direction):
    return np.left_shift if direction == "LEFT" else np.right_shift


def rounded(x, bits):
    """Normal numbers with that many bits behind the first one, to the nearest, the even one of two."""
    parts, exponents = np.frexp(x.astype(np.float64))
    return np.ldexp(np.round(np.ldexp(parts, bits + 1)), exponents - bits - 1)


def log_softmax(x):
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


# ---- One operand: at several ranks ----
for op, data, ref in [
        ("Abs", "normal", np.abs), ("Neg", "normal", np.negative), ("Sqrt", "positive", np.sqrt),
        ("Exp", "small", np.exp), ("Log", "positive", np.log), ("Sin", "wide", np.sin), ("Cos", "wide", np.cos),
        ("Tan", "unit", np.tan), ("Asin", "unit", np.arcsin), ("Acos", "unit", np.arccos),
        ("Atan", "wide", np.arctan), ("Sinh", "small", np.sinh), ("Cosh", "small", np.cosh),
        ("Tanh", "small", np.tanh), ("Asinh", "wide", np.arcsinh), ("Acosh", "above1", np.arccosh),
        ("Atanh", "unit", np.arctanh), ("Erf", "small", erf), ("Sigmoid", "wide", sigmoid),
        ("Floor", "wide", np.floor), ("Ceil", "wide", np.ceil), ("Round", "wide", np.round),
        ("Sign", "normal", np.sign), ("Reciprocal", "nonzero", np.reciprocal),
        ("Relu", "normal", lambda x: np.maximum(x, 0)), ("Softplus", "wide", softplus),
        ("Softsign", "wide", lambda x: x / (1 + np.abs(x))), ("Identity", "normal", lambda x: x)]:
    R(op, [T("A,B", data)], ELEMENTWISE, FLOATS, ref, _tol=4)
    R(op, [T("N", data)], VECTOR, F32, ref, _tol=4)
    R(op, [T("", data)], [()], F32, ref, _tol=4)
    R(op, [T("A,3,B,2", data)], [(2, 5), (1, 16), (0, 3)], F32, ref, _tol=4)

# Values at the edges of the range. Sines of huge numbers are left out: no bound is stated for them.
for op, ref in [("Abs", np.abs), ("Neg", np.negative), ("Sqrt", np.sqrt), ("Exp", np.exp), ("Log", np.log),
                ("Tanh", np.tanh), ("Erf", erf), ("Sigmoid", sigmoid), ("Floor", np.floor), ("Ceil", np.ceil),
                ("Round", np.round), ("Relu", lambda x: np.maximum(x, 0)), ("Atan", np.arctan),
                ("IsNaN", np.isnan), ("IsInf", np.isinf)]:
    R(op, [T("A,B", "special")], [(3, 7), (1, 63)], FLOATS, ref, _tol=4)
R("IsInf", [T("A,B", "special")], [(3, 7)], F32, lambda x: x == np.inf, detect_negative=0)
R("IsInf", [T("A,B", "special")], [(3, 7)], F32, lambda x: x == -np.inf, detect_positive=0)

R("Abs", [T("A,B", "normal")], ELEMENTWISE, SIGNED, np.abs)
R("Neg", [T("A,B", "normal")], ELEMENTWISE, SIGNED, np.negative)
R("Sign", [T("A,B", "normal")], ELEMENTWISE, SIGNED, np.sign)
R("Relu", [T("A,B", "normal")], ELEMENTWISE, ["i32"], lambda x: np.maximum(x, 0))
R("Not", ["A,B"], ELEMENTWISE, BOOL, np.logical_not)
R("Not", ["A,B"], [(37, 1024)], BOOL, np.logical_not, _symbolic=False)  # several booleans a thread of a GPU
R("BitwiseNot", [T("A,B", "extremes")], ELEMENTWISE, INTS, np.bitwise_not)
R("Identity", ["A,B"], ELEMENTWISE, INTS + BOOL, lambda x: x)

R("Elu", ["A,B"], ELEMENTWISE, FLOATS, lambda x: np.where(x > 0, x, 0.75 * np.expm1(np.minimum(x, 0))), alpha=0.75, _tol=4)
R("Celu", ["A,B"], ELEMENTWISE, F32, lambda x: np.maximum(x, 0) + np.minimum(0, 0.7 * np.expm1(x / 0.7)), alpha=0.7,
  _tol=4)
R("Selu", ["A,B"], ELEMENTWISE, F32, lambda x: 1.5 * np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0))), alpha=2.0,
  gamma=1.5, _tol=4)
R("LeakyRelu", ["A,B"], ELEMENTWISE, FLOATS, lambda x: np.where(x >= 0, x, 0.125 * x), alpha=0.125)
R("ThresholdedRelu", ["A,B"], ELEMENTWISE, F32, lambda x: np.where(x > 0.3, x, 0), alpha=0.3)
R("HardSigmoid", ["A,B"], ELEMENTWISE, FLOATS, lambda x: np.clip(0.25 * x + 0.5, 0, 1), alpha=0.25, beta=0.5)
R("HardSwish", ["A,B"], ELEMENTWISE, FLOATS, lambda x: x * np.clip(x / 6 + 0.5, 0, 1))
R("Swish", ["A,B"], ELEMENTWISE, FLOATS, lambda x: x * sigmoid(0.5 * x), alpha=0.5, _opset=24, _tol=4)
R("Mish", ["A,B"], ELEMENTWISE, F32, lambda x: x * np.tanh(softplus(x)), _tol=4)
R("Gelu", ["A,B"], ELEMENTWISE, FLOATS, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), _tol=4)
R("Gelu", ["A,B"], ELEMENTWISE, F32,
  lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), approximate="tanh", _tol=4)
R("Shrink", ["A,B"], ELEMENTWISE, F32, lambda x: np.where(x < -0.5, x + 0.25, np.where(x > 0.5, x - 0.25, 0)), bias=0.25,
  lambd=0.5)
R("PRelu", ["A,B", "B"], ELEMENTWISE, FLOATS, lambda x, s: np.where(x < 0, s * x, x))

# ---- Two operands: equal shapes, and every way of broadcasting ----
PAIRS = [["A,B", "A,B"], ["A,B", "B"], ["A,B", ""], ["B", "A,1"], ["A,1", "1,B"], ["A,1,B", "3,B"]]
for op, ref in [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)]:
    for pair in PAIRS:
        R(op, pair, ELEMENTWISE, F32, ref)
    R(op, ["A,B", "B"], ELEMENTWISE, ["f64", *HALVES], ref)
    R(op, [T("A,B", "extremes"), T("A,B", "extremes")], ELEMENTWISE, INTS, ref)
    R(op, [T("A,B", "special"), T("A,B", "special")], [(3, 7), (1, 63)], F32, ref)
for pair in PAIRS:
    R("Div", [pair[0], T(pair[1], "nonzero")], ELEMENTWISE, F32, divide)
R("Div", ["A,B", T("B", "nonzero")], ELEMENTWISE, ["f64", *HALVES], divide)
R("Div", [T("A,B", "wide"), T("A,B", "nonzero")], ELEMENTWISE, INTS, divide)
for op, ref in [("Max", np.maximum), ("Min", np.minimum)]:
    R(op, ["A,B", "B"], ELEMENTWISE, FLOATS, ref)
    R(op, [T("A,B", "extremes"), T("A,B", "extremes")], ELEMENTWISE, INTS, ref)
    R(op, [T("A,B", "special"), T("A,B", "special")], [(3, 7), (1, 63)], FLOATS, ref)
    R(op, ["A,B"], [(3, 5)], F32, lambda x: x)
    R(op, ["A,B", "B", "A,1"], [(3, 5), (1, 16)], F32, lambda a, b, c, f=ref: f(f(a, b), c))
R("Sum", ["A,B", "B", "A,1"], [(3, 5), (1, 16)], FLOATS, lambda a, b, c: a + b + c, _tol=2)
R("Mean", ["A,B", "B", "A,1"], [(3, 5), (1, 16)], F32, lambda a, b, c: (a + b + c) / 3, _tol=2)
R("Pow", [T("A,B", "positive"), T("A,B", "small")], ELEMENTWISE, FLOATS, np.power, _tol=8)
R("Pow", ["A,B", C(2.0, "f32")], ELEMENTWISE, F32, np.power, _tol=4)
R("Pow", ["A,B", C(0.5, "f32")], [(3, 5)], F32, lambda a, b: np.power(a, b), _tol=4)
R("Pow", ["A,B", C(3.0, "f32")], ELEMENTWISE, F32, np.power, _tol=4)
R("Pow", ["A,B", T("A,B", "bit", "i64")], ELEMENTWISE, F32, np.power, _tol=8)
R("Pow", [T("A,B", "small"), T("A,B", "bit")], ELEMENTWISE, ["i32", "i64"], np.power)
R("Mod", [T("A,B", "wide"), T("A,B", "nonzero")], ELEMENTWISE, INTS, np.mod)
R("Mod", [T("A,B", "wide"), T("A,B", "nonzero")], ELEMENTWISE, FLOATS + SIGNED, np.fmod, fmod=1)
for op, ref in [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)]:
    R(op, ["A,B", "B"], ELEMENTWISE, BOOL, ref)
for op, ref in [("BitwiseAnd", np.bitwise_and), ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor)]:
    R(op, [T("A,B", "extremes"), T("B", "extremes")], ELEMENTWISE, INTS, ref)
for direction in ("LEFT", "RIGHT"):
    R("BitShift", [T("A,B", "extremes"), T("A,B", "bit")], ELEMENTWISE, UNSIGNED, shift(direction), direction=direction)
for op, ref in [("Equal", np.equal), ("Greater", np.greater), ("Less", np.less), ("GreaterOrEqual", np.greater_equal),
                ("LessOrEqual", np.less_equal)]:
    R(op, ["A,B", "B"], ELEMENTWISE, FLOATS + INTS, ref)
    R(op, [T("A,B", "special"), T("A,B", "special")], [(3, 7), (1, 63)], F32, ref)
    R(op, [T("A,B", "extremes"), T("A,B", "extremes")], [(3, 7), (1, 63)], INTS, ref)
R("Equal", ["A,B", "A,B"], ELEMENTWISE, BOOL, np.equal)

# ---- Three, and bounds ----
R("Where", [T("A,B", dtype="bool"), "A,B", "A,B"], ELEMENTWISE, ALL, np.where)
R("Where", [T("A,1", dtype="bool"), "B", ""], ELEMENTWISE, F32, np.where)
R("Clip", ["A,B", C(-0.5, "f32"), C(0.75, "f32")], ELEMENTWISE, F32, np.clip)
R("Clip", ["A,B", T("", "unit"), NONE], ELEMENTWISE, FLOATS, lambda x, low, high: np.maximum(x, low))
R("Clip", ["A,B", NONE, T("", "unit")], ELEMENTWISE, FLOATS, lambda x, low, high: np.minimum(x, high))
R("Clip", ["A,B", C(-3, "i32"), C(4, "i32")], ELEMENTWISE, ["i32"], np.clip)

# ---- Types ----
CAST_TO = {"f32": 1, "u8": 2, "i8": 3, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "bf16": 16}


def cast(to):
    kind = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "bool": np.bool_, "i8": np.int8, "u8": np.uint8,
            "i16": np.int16, "i32": np.int32, "i64": np.int64, "bf16": np.float64}[to]
    return lambda x: x.astype(kind)


for to, number in CAST_TO.items():
    R("Cast", [T("A,B", "positive")], ELEMENTWISE, ALL, cast(to), to=number)
R("Cast", [T("A,B", "wide")], ELEMENTWISE, FLOATS + SIGNED, cast("i32"), to=6)
R("Cast", [T("A,B", "extremes")], [(5, 13)], INTS, cast("f32"), to=1)
R("Cast", [T("A,B", "special")], [(3, 7)], FLOATS, cast("bool"), to=9)
R("Cast", [T("A,B", "special")], [(3, 7)], ["f32", "f16", "bf16"], cast("f64"), to=11)
# A number that becomes a half and a float again is rounded, in one kernel too: to 10 or 7 bits behind the point.
for half, bits in [(10, 10), (16, 7)]:
    R(f"h = Cast <to={half}> (x0) s = Cast <to=1> (h) y0 = Tanh (s)", ["A,B"], [(4, 16), (4, 17)], F32,
      lambda x, bits=bits: np.tanh(rounded(x, bits)), _tol=4)
    R(f"h = Cast <to={half}> (x0) s = Cast <to=1> (h) y0 = LogSoftmax <axis = -1> (s)", ["A,B"], [(4, 16), (4, 17)],
      F32, lambda x, bits=bits: log_softmax(rounded(x, bits)), _tol=8)
R("BitCast", ["A,B"], [(3, 7)], F32, lambda x: x.astype(np.float32).view(np.int32), to=6, _opset=26)
# Division by zero gives zero, and the smallest number divided by -1 itself: no trap.
R("Div", [T("2,B", "extremes"), C([[0], [-1]], "i32")], [(1,), (64,)], ["i32"],
  lambda a, b: np.stack([0 * a[0], -a[1]]))
R("CastLike", ["A,B", T("1", dtype="i32")], [(3, 7)], ["f32", "i64", "bool"], lambda x, like: x.astype(np.int32))
