"""Pieces of networks: attention, quantisation, recurrent layers, control flow, and chains of ops that are fused."""

import numpy as np

from numeric_row import F32, IMAGE, C, R, T, W
from rows_window import instance_norm

SEQUENCES = [(2, 7, 5), (1, 1, 1), (1, 33, 16), (3, 16, 64)]  # batch, length, features


def softmax(x):
    y = np.exp(x - x.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def heads_attention(q, k, v, heads):
    q, k, v = (x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2) for x in (q, k, v))
    mixed = softmax(q @ k.swapaxes(-1, -2)) @ v
    return mixed.swapaxes(1, 2).reshape(mixed.shape[0], mixed.shape[2], -1)


R("""t = Transpose <perm=[0,1,3,2]> (x1) s = MatMul(x0, t) m = Mul(s, x3) p = Softmax <axis=-1> (m)
     y0 = MatMul(p, x2)""", ["B,H,S,D", "B,H,S,D", "B,H,S,D", C(0.25, "f32")],
  [(2, 3, 7, 5), (1, 1, 1, 1), (1, 4, 33, 16), (1, 8, 40, 15)], F32,
  lambda q, k, v, s: softmax(q @ k.swapaxes(-1, -2) * s) @ v, _tol=64)

# Rows of unknown length, and one that the channels of the next layer's layout walk across.
R("n = InstanceNormalization(x0, x1, x2) y0 = Conv(n, x3)", ["N,16,H,W", "16", "16", W("33,16,1,1")], [(2, 7, 5), (1, 3, 9)],
  F32, lambda x, s, b, w: np.einsum("nchw,mc->nmhw", instance_norm(x, s, b), w[:, :, 0, 0]), _tol=64)
R("n = InstanceNormalization(x0, x1, x2) u = Unsqueeze(n, x4) y0 = Add(u, x3)", ["N,C,H,W", "C", "C", "1,1,E,1,1", C([2])],
  [(2, 16, 7, 5, 3), (1, 3, 5, 9, 1)], F32,
  lambda x, s, b, e, _: instance_norm(x, s, b)[:, :, None] + e, _tol=64)

# Transpositions around products; multi-head attention as exporters write it.
HEADS = [(2, 7, 3, 4, 5), (1, 1, 1, 1, 1), (1, 33, 2, 16, 65), (2, 64, 1, 17, 31), (0, 3, 2, 4, 4)]  # B, S, H, D, T
R("""a = Transpose <perm=[0,2,1,3]> (x0) b = Transpose <perm=[0,2,3,1]> (x1) p = MatMul(a, b)
     y0 = Transpose <perm=[0,2,1,3]> (p)""", ["B,S,H,D", "B,T,H,D"], HEADS, F32,
  lambda q, k: np.einsum("bshd,bthd->bsht", q, k), _tol=32)
R("a = Transpose <perm=[0,2,1]> (x0) p = MatMul(a, x1) y0 = Transpose <perm=[0,2,1]> (p)", ["B,K,M", "B,K,N"],
  [(2, 7, 5, 3), (1, 64, 33, 65), (3, 31, 64, 16)], F32, lambda a, b: np.einsum("bkm,bkn->bnm", a, b), _tol=32)
R("a = Transpose <perm=[0,2,1]> (x0) p = MatMul(x1, a) y0 = Add(p, x2)", ["B,N,K", "B,M,K", "N"],
  [(2, 7, 5, 3), (1, 64, 33, 65), (3, 31, 64, 16), (2, 17, 128, 129)], F32,
  lambda a, b, c: b @ a.swapaxes(1, 2) + c, _tol=32)
R("""s = Reshape(x0, x3) a = Transpose <perm=[0,2,1,3]> (s) t = Reshape(x1, x3) b = Transpose <perm=[0,2,3,1]> (t)
     u = Reshape(x2, x3) c = Transpose <perm=[0,2,1,3]> (u) p = MatMul(a, b) w = Softmax <axis=-1> (p)
     m = MatMul(w, c) n = Transpose <perm=[0,2,1,3]> (m) y0 = Reshape(n, x4)""",
  ["B,S,24", "B,T,24", "B,T,24", C([0, 0, 3, 8]), C([0, 0, 24])],
  [(2, 7, 5), (1, 1, 1), (1, 33, 65), (3, 129, 17)], F32, lambda q, k, v, *_: heads_attention(q, k, v, 3), _tol=64)
# Keys around and beyond a block of them, few and many queries, values of another width, masks: additive (one for all
# heads and queries, with rows of which nothing is left), boolean, of each score.
# As many keys as a value has numbers: scores and result have one shape, and both products begin with the same zeros.
KEYS = [(2, 3, 7, 5, 9), (1, 2, 20, 64, 64), (1, 1, 64, 128, 16), (1, 2, 65, 129, 17), (2, 1, 5, 300, 31), (1, 2, 63, 127, 128),
        (1, 1, 130, 257, 129), (2, 2, 4, 131, 17)]  # B, H, S, T, V
R("""t = Transpose <perm=[0,1,3,2]> (x1) s = MatMul(x0, t) d = Div(s, x4) m = Add(d, x3) p = Softmax <axis=-1> (m)
     y0 = MatMul(p, x2)""", ["B,H,S,8", "B,H,T,8", "B,H,T,V", T("B,1,1,T", "wide"), C(3.0, "f32")], KEYS, F32,
  lambda q, k, v, m, s: softmax(q @ k.swapaxes(-1, -2) / s + m) @ v, _tol=64)
R("""t = Transpose <perm=[0,1,3,2]> (x1) s = MatMul(x0, t) m = Where(x3, s, x4) p = Softmax <axis=-1> (m)
     y0 = MatMul(p, x2)""", ["B,H,S,8", "B,H,T,8", "B,H,T,V", T("S,T", dtype="bool"), C(-np.inf, "f32")], KEYS, F32,
  lambda q, k, v, m, low: softmax(np.where(m, q @ k.swapaxes(-1, -2), low)) @ v, _tol=64)
# Few queries of heads that are wide enough for products of few vectors, with a mask.
R("""t = Transpose <perm=[0,1,3,2]> (x1) s = MatMul(x0, t) m = Add(s, x3) p = Softmax <axis=-1> (m) y0 = MatMul(p, x2)""",
  ["B,H,S,32", "B,H,T,32", "B,H,T,V", T("B,1,1,T", "wide")], [(2, 2, 4, 131, 17), (1, 3, 5, 16, 8), (1, 2, 5, 300, 31)], F32,
  lambda q, k, v, m: softmax(q @ k.swapaxes(-1, -2) + m) @ v, _tol=64)
# Heads that share keys and values: one query of each of 3, 4, 5 and 6 is 3 to 6 rows of one product.
R("""k = Unsqueeze(x1, x3) v = Unsqueeze(x2, x3) s = MatMul(x0, k) p = Softmax <axis=-1> (s) y0 = MatMul(p, v)""",
  ["B,H,R,1,32", "B,H,32,T", "B,H,T,V", C([2])], [(2, 3, 3, 65, 16), (1, 2, 4, 129, 65), (2, 1, 5, 300, 31), (1, 2, 6, 64, 64)], F32,
  lambda q, k, v, _: softmax(q @ k[:, :, None]) @ v[:, :, None], _tol=64)
# Masks that hide whole blocks of keys, at first, at last and in between, and a row as a whole: by a constant in place of
# scores, the lowest number as exporters have it, and by one that is added.
HIDDEN = np.triu(np.ones((150, 300), bool), 20)
HIDDEN[130:, :140] = HIDDEN[7] = True
LOWEST = float(np.finfo(np.float32).min)
for low in (-np.inf, LOWEST):
    R("s = MatMul(x0, x1) m = Where(x3, x4, s) p = Softmax <axis=-1> (m) y0 = MatMul(p, x2)",
      ["B,150,8", "B,8,300", "B,300,V", C(HIDDEN, "bool"), C(low, "f32")], [(2, 17)], F32,
      lambda q, k, v, m, c: softmax(np.where(m, c, q @ k)) @ v, _opset=13, _tol=64)
R("s = MatMul(x0, x1) m = Where(x3, s, x4) p = Softmax <axis=-1> (m) y0 = MatMul(p, x2)",
  ["B,150,8", "B,8,300", "B,300,V", C(~HIDDEN, "bool"), C(LOWEST, "f32")], [(1, 33)], F32,
  lambda q, k, v, m, c: softmax(np.where(m, q @ k, c)) @ v, _opset=13, _tol=64)
R("s = MatMul(x0, x1) m = Add(s, x3) p = Softmax <axis=-1> (m) y0 = MatMul(p, x2)",
  ["B,150,8", "B,8,300", "B,300,V", C(np.where(HIDDEN, -np.inf, 0.5), "f32")], [(2, 17)], F32,
  lambda q, k, v, m: softmax(q @ k + m) @ v, _opset=13, _tol=64)
R("""s = MatMul(x0, x1) h = ReduceMax <axes=[-1],keepdims=1> (s) d = Sub(s, h) e = Exp(d)
     z = ReduceSum <keepdims=1> (e, x3) p = Div(e, z) y0 = MatMul(p, x2)""", ["B,S,8", "B,8,T", "B,T,V", C([-1])],
  [size[:1] + size[2:] for size in KEYS], F32, lambda q, k, v, _: softmax(q @ k) @ v, _opset=13, _tol=64)
R("""m = ReduceMean <axes=[-1]> (x0) d = Sub(x0, m) s = Mul(d, d) v = ReduceMean <axes=[-1]> (s) e = Add(v, x1)
     r = Sqrt(e) y0 = Div(d, r)""", ["B,S,D", C(1e-5, "f32")], SEQUENCES, F32,
  lambda x, e: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + e), _opset=13, _tol=32)
R("a = Add(x0, x1) b = Mul(a, x2) c = Tanh(b) y0 = Sub(c, x0) y1 = Sigmoid(a)", ["B,S,D", "D", "S,1"], SEQUENCES, F32,
  _outputs=2, _tol=8)
R("s = Shape(x0) y0 = Cast <to=1> (s)", ["B,S,D"], SEQUENCES, F32, lambda x: np.array(x.shape, np.float64))
R("""a = Shape(x0) n = Gather <axis=0> (a, x1) h = Unsqueeze(n, x2) s = Concat <axis=0> (h, x3)
     y0 = Reshape(x0, s)""", ["N,4,H,W", C(0), C([0]), C([-1])], [(2, 3, 5), (1, 1, 1), (3, 8, 2)], F32,
  lambda x, *_: x.reshape(x.shape[0], -1))

# One vector, walked in two ways by what is reduced.
for axis, ends, ref in ((0, "s, t", lambda x, *_: softmax(x - x[:, None]).T), (1, "s, t", lambda x, *_: softmax(x[:, None] - x)),
                        (1, "t, s", lambda x, *_: softmax(x - x[:, None]))):
    R(f"s = Unsqueeze(x0, x1) t = Unsqueeze(x0, x2) d = Sub({ends}) y0 = Softmax <axis={axis}> (d)",
      ["A", C([1]), C([0])], [(96,), (33,), (7,)], F32, ref, _opset=13, _tol=16)
# Four reductions, one behind the other, across rows and along them.
def chain_reference(x, axis):
    x = x - x.mean(axis, keepdims=True)
    p = np.exp(x - x.max(axis, keepdims=True))
    p /= p.sum(axis, keepdims=True)
    return p / p.max(axis, keepdims=True)


for axis in (1, 2):
    R(f"""m = ReduceMean <axes=[{axis}]> (x0) d = Sub(x0, m) p = Softmax <axis={axis}> (d) k = ReduceMax <axes=[{axis}]> (p)
          y0 = Div(p, k)""", ["A,B,C"], [(1, 96, 64), (2, 33, 20), (3, 7, 130)], F32,
      lambda x, axis=axis: chain_reference(x, axis), _opset=13, _tol=32)

# Ops that turn out to compute nothing once they are joined with others; rows of a slice that is read backwards; a product
# of what is filled with one value; slopes that are not one run with the rows of a product's operand, a slice.
R("g = GreaterOrEqual(x0, x0) n = Not(g) w = Where(n, x0, x0) y0 = Softmax <axis=-1> (w)", ["A,B,D"], SEQUENCES, F32, softmax)
R("""p = Einsum <equation="ij,kj->ki"> (x0, x1) t = Transpose <perm=[1,0]> (p) m = ReduceMean <axes=[-1],keepdims=1> (t)
     y0 = Sub(t, m)""", ["A,17", W("15,17")], [(7,), (1,), (33,)], F32,
  lambda x, w: x @ w.T - (x @ w.T).mean(-1, keepdims=True), _opset=13, _tol=32)
R("s = Slice(x0, x1, x2, x3, x4) c = Ceil(s) y0 = ReduceSum <keepdims=0> (c, x5)",
  ["A,3,2,7,B", C([5]), C([-20]), C([3]), C([-2]), C([1, 3, 4])], [(2, 5), (1, 1), (3, 33)], F32,
  lambda x, *_: np.ceil(x[:, :, :, 5::-2]).sum((1, 3, 4)), _opset=13, _tol=16)
R("s = Shape(x0) f = ConstantOfShape(s) c = Cos(f) p = MatMul(c, x1) y0 = Add(p, x0)", ["A,15", W("15,15")],
  [(7,), (1,), (130,)], F32, lambda x, w: np.ones_like(x) @ w + x, _tol=32)
R("c = Conv <pads=[1,1]> (x0, x1) m = MatMul(c, x2) a = Add(m, x3) y0 = PRelu(a, x4)",
  ["A,11,1", W("8,11,3"), "1,100", "100", "8,1"], [(3,), (1,)], F32, _tol=64)

# ---- Quantised ----
R("QuantizeLinear", ["A,B", C(0.1, "f32"), C(3, "u8")], [(3, 7), (1, 65)], F32)
R("QuantizeLinear", ["A,B", C(0.1, "f32"), C(-3, "i8")], [(3, 7), (1, 65)], F32)
R("QuantizeLinear", ["A,4", C([0.1, 0.2, 0.3, 0.4], "f32"), C([1, 2, 3, 4], "u8")], [(3,)], F32, axis=1)
R("DequantizeLinear", [T("A,B", "extremes", "u8"), C(0.1, "f32"), C(130, "u8")], [(3, 7), (1, 65)], F32)
R("DequantizeLinear", [T("A,4", "extremes", "i8"), C([0.1, 0.2, 0.3, 0.4], "f32")], [(3,)], F32, axis=1)
R("q = QuantizeLinear(x0, x1, x2) y0 = DequantizeLinear(q, x1, x2)", ["A,B", C(0.05, "f32"), C(128, "u8")], [(3, 7)], F32)
R("QuantizeLinear", ["A,B", C(0.001, "f32"), C(-300, "i16")], [(3, 7), (1, 65)], F32,
  lambda x, scale, zero: np.clip(np.round(x.astype(np.float32) / scale) + zero, -2**15, 2**15 - 1).astype(np.int16))
R("QuantizeLinear", ["A,10", C([[0.1, 0.2, 0.3]], "f32"), C([[1, 2, 3]], "u8")], [(1,)],
  F32, lambda x, scale, zero: np.clip(np.round(x.astype(np.float32) / scale.repeat(4, 1)[:, :10]) + zero.repeat(4, 1)[:, :10],
                                      0, 255).astype(np.uint8), axis=1, block_size=4, _opset=21, _symbolic=False)
R("DequantizeLinear", [T("1,8", "extremes", "i8"), C([[0.1, 0.2]], "f32"), C([[1, -2]], "i8")], [()], F32,
  lambda x, scale, zero: (x - zero.repeat(4, 1).astype(np.float64)) * scale.repeat(4, 1), axis=1, block_size=4, _opset=21,
  _tol=4)
R("DynamicQuantizeLinear", ["A,B"], [(3, 7), (1, 65)], F32, _outputs=3)

# ---- Recurrent ----
for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
    outputs = 3 if op == "LSTM" else 2
    for direction, count in [("forward", 1), ("reverse", 1), ("bidirectional", 2)]:
        R(op, ["S,B,5", W(f"{count},{gates * 6},5"), W(f"{count},{gates * 6},6"), W(f"{count},{gates * 12}")],
          [(3, 2), (1, 1), (7, 3)], F32, hidden_size=6, direction=direction, _outputs=outputs, _tol=32)
R("GRU", ["S,B,5", W("1,18,5"), W("1,18,6"), W("1,36")], [(3, 2), (7, 3)], F32, hidden_size=6, linear_before_reset=1,
  _outputs=2, _tol=32)

# ---- Images ----
R("GridSample", ["N,2,H,W", T("N,4,5,2", "unit")], IMAGE[:3], F32, _tol=64, align_corners=1)
R("GridSample", ["N,2,H,W", T("N,4,5,2", "unit")], IMAGE[:3], F32, _tol=64, padding_mode="border", mode="nearest")
