"""Products and convolutions. Float32 sums of k products are held to a bound that grows with sqrt(k): _tol."""

import numpy as np

from numeric_row import F32, HALVES, IMAGE, MATRIX, VECTOR, C, R, T, W

R("MatMul", ["M,K", "K,N"], MATRIX, ["f32", "f64", *HALVES], np.matmul, _tol=16)
R("MatMul", ["B,1,M,1", W("1,257")], [(62, 3), (2, 3)], F32, np.matmul, _tol=4)  # a product is a sum of one
R("MatMul", ["M,K", W("13,24")], [(7, 13), (1, 13), (33, 13), (0, 13)], F32, lambda a, b: a @ b, _tol=8, _symbolic=False)
R("MatMul", ["M,48", W("48,40")], [(7,), (1,), (33,), (0,), (128,)], F32, np.matmul, _tol=8)
# Layers whose rows are known only at run time, as those of a transformer: batches and lengths are one loop.
R("p = MatMul(x0, x1) b = Add(p, x2) r = Relu(b) y0 = Add(r, x3)", ["B,M,72", W("72,136"), W("136"), "B,M,136"],
  [(3, 37), (1, 1), (2, 64), (5, 0), (1, 131)], ["f32", *HALVES], lambda a, b, c, d: np.maximum(a @ b + c, 0) + d, _tol=16)
R("p = MatMul(x0, x1) s = Mul(p, x2) y0 = Sub(s, x3)", ["B,M,33", W("33,7"), "B,M,1", "M,7"], [(3, 13), (1, 1), (2, 66)],
  ["f32", "f16"], lambda a, b, c, d: a @ b * c - d, _tol=16)
R("MatMul", ["B,M,K", "B,K,N"], [(2, 7, 13, 11), (1, 1, 1, 1), (3, 16, 32, 17), (0, 4, 4, 4), (2, 3, 0, 4),
  (2, 67, 5, 16)], F32, np.matmul, _tol=16)
R("MatMul", ["B,M,K", "K,N"], [(2, 7, 13, 11), (1, 1, 1, 1), (3, 16, 32, 17), (0, 4, 4, 4)], F32, np.matmul, _tol=16)
R("MatMul", ["M,K", "B,K,N"], [(7, 13, 2, 11), (16, 32, 3, 17)], F32, np.matmul, _tol=16)
R("MatMul", [W("31,24"), "B,24,16"], [(2,), (1,), (5,), (0,)], F32, np.matmul, _tol=8)  # a batch of as many columns as a block has
R("MatMul", ["B,1,M,K", "H,K,N"], [(2, 7, 13, 3, 11), (1, 1, 1, 1, 1), (2, 5, 16, 4, 8)], F32, np.matmul, _tol=16)
R("MatMul", ["K", "K,N"], [(7, 5), (64, 33), (1, 1)], F32, np.matmul, _tol=16)
R("MatMul", ["M,K", "K"], [(7, 5), (64, 33), (1, 1)], F32, np.matmul, _tol=16)
# A matrix with few vectors, contiguous along the results or along the sum, longer than what is packed at a time, and with
# an epilogue; results that are contiguous along neither.
R("MatMul", ["A,B,M,K", "A,B,K,N"], [(1, 2, 3, 37, 65), (1, 1, 1, 2053, 17), (1, 2, 131, 67, 2)], ["f32", "f64"], np.matmul, _tol=16,
  _terms=lambda *sizes: sizes[3])
R("MatMul", ["5,K", "K,N"], [(17, 1031)], F32, np.matmul, _tol=16)
R("t = MatMul(x0, x1) u = Add(t, x2) y0 = Relu(u)", ["M,K", "K,3", "3"], [(131, 67)], F32,
  lambda a, b, c: np.maximum(a @ b + c, 0), _tol=32)
R("MatMul", ["K", "K"], VECTOR, F32, np.matmul, _tol=32)
R("MatMul", ["M,K", "K,N"], MATRIX[:4], ["i32", "i64", "u32", "u64"], np.matmul)
R("MatMulInteger", [T("M,K", "extremes", "u8"), T("K,N", "extremes", "i8")], MATRIX, ["u8"],
  lambda a, b: a.astype(np.int32) @ b.astype(np.int32))
R("MatMulInteger", [T("M,K", "extremes", "u8"), T("K,N", "extremes", "u8"), C(7, "u8"), C(130, "u8")], MATRIX[:5],
  ["u8"], lambda a, b, x, y: (a.astype(np.int32) - int(x)) @ (b.astype(np.int32) - int(y)))
# Constant weights: sums that f32 holds, and those that it holds in parts only.
for depth in (65, 700):
    R("MatMulInteger", [T(f"M,{depth}", "extremes", "u8"), W(f"{depth},19", "extremes", "i8"), C(130, "u8")], [(5,), (33,), (1,)], ["u8"],
      lambda a, b, x: (a.astype(np.int32) - int(x)) @ b.astype(np.int32))
# Several matrices, a zero point a column, more parts than are taken, differences of two types, unsigned sums.
R("MatMulInteger", [T("3,M,300", "extremes", "u8"), W("3,300,19", "extremes", "i8"), C(130, "u8"), W("19", "extremes", "i8")],
  [(5,), (33,)], ["u8"], lambda a, b, x, y: (a.astype(np.int32) - int(x)) @ (b.astype(np.int32) - y.astype(np.int32)))
R("MatMulInteger", [T("M,9000", "extremes", "u8"), W("9000,3", "extremes", "i8")], [(2,)], ["u8"],
  lambda a, b: a.astype(np.int32) @ b.astype(np.int32))
for to, wide in ((6, np.int32), (12, np.uint32)):
    R(f"a = Cast <to={to}> (x0) z = Cast <to={to}> (x1) s = Sub(a, z) b = Cast <to={to}> (x2) y0 = MatMul(s, b)",
      [T("M,300", "extremes", "u8"), T("300", "extremes", "i8" if to == 6 else "u8"), T("300,7", "extremes", "u8")], [(3,), (17,)], ["u8"],
      lambda a, z, b, wide=wide: (a.astype(wide) - z.astype(wide)) @ b.astype(wide))


def gemm(alpha=1.0, beta=1.0, left=False, right=False):
    def make(a, b, c=0.0):
        return alpha * ((a.T if left else a) @ (b.T if right else b)) + beta * c

    return make


R("Gemm", ["M,K", "K,N", "N"], MATRIX, ["f32", "f64", "f16"], gemm(), _tol=16)
R("Gemm", ["M,K", "N,K", "M,N"], [(7, 13, 11), (1, 1, 1), (31, 32, 33)], F32, gemm(0.5, 2.0, right=True), alpha=0.5,
  beta=2.0, transB=1, _tol=16)
R("Gemm", ["M,K", "N,K", "N"], [(1, 2053, 33), (5, 67, 131)], ["f32", "f64"], gemm(right=True), transB=1, _tol=16,
  _terms=lambda *sizes: sizes[1])
R("Gemm", ["K,M", "K,N", ""], [(13, 7, 11), (1, 1, 1), (32, 31, 33)], F32, gemm(left=True), transA=1, _tol=16)
R("Gemm", ["K,M", "N,K"], [(13, 7, 11), (32, 31, 33)], F32, gemm(left=True, right=True), transA=1, transB=1, _tol=16)
R("Gemm", ["M,48", W("40,48"), W("40")], [(7,), (1,), (33,), (128,), (0,)], F32, gemm(right=True), transB=1, _tol=16)
R("Gemm", ["M,K", "K,N", "M,1"], [(7, 13, 11), (4, 0, 5)], F32, gemm(), _tol=16)
for equation, shapes, sizes in [
        ("ij,jk->ik", ["I,J", "J,K"], [(3, 5, 7), (16, 17, 15)]), ("bij,bjk->bik", ["B,I,J", "B,J,K"], [(2, 3, 5, 7)]),
        ("ij->ji", ["I,J"], [(3, 5)]), ("ij->", ["I,J"], [(3, 5)]), ("ii->i", ["I,I"], [(5,)]),
        ("bhid,bhjd->bhij", ["B,H,I,D", "B,H,J,D"], [(2, 3, 5, 8, 7)]), ("...ij,...jk->...ik", ["B,I,J", "B,J,K"], [(2, 3, 5, 7)]),
        ("i,j->ij", ["I", "J"], [(5, 7)]), ("ij,ij->i", ["I,J", "I,J"], [(5, 7)])]:
    R("Einsum", shapes, sizes, F32, lambda *x, e=equation: np.einsum(e, *x), equation=equation, _tol=16)

# ---- Convolutions: weights that are constants, and weights that are inputs ----
# Widths known at run time only: every way to end a row in smaller register tiles, and rows of several pieces.
R("Conv", ["1,16,2,W", W("32,16,3,3"), W("32")], [(n,) for n in (*range(1, 31), 41, 42, 43, 55, 83, 127, 131, 251)], F32,
  pads=[1, 1, 1, 1], _static=False, _tol=32)
R("Conv", ["N,3,H,W", W("16,3,3,3")], IMAGE, F32, pads=[1, 1, 1, 1], _tol=32)
R("Conv", ["N,16,H,W", W("32,16,3,3"), W("32")], IMAGE, F32, pads=[1, 1, 1, 1], _tol=32)
R("Conv", ["N,16,H,W", W("17,16,1,1"), W("17")], IMAGE, F32, _tol=32)
R("Conv", ["N,16,H,W", W("16,16,1,1")], IMAGE, F32, strides=[2, 2], _tol=32)
R("Conv", ["N,3,H,W", W("8,3,7,7"), W("8")], IMAGE, F32, strides=[2, 2], pads=[3, 3, 3, 3], _tol=32)
R("Conv", ["N,5,H,W", W("7,5,3,3")], IMAGE, F32, dilations=[2, 2], pads=[2, 2, 2, 2], _tol=32)
R("Conv", ["N,5,H,W", W("7,5,3,2")], IMAGE, F32, pads=[0, 1, 2, 0], strides=[2, 1], _tol=32)
R("Conv", ["N,16,H,W", W("16,1,3,3"), W("16")], IMAGE, F32, group=16, pads=[1, 1, 1, 1], _tol=16)
R("Conv", ["N,8,H,W", W("8,1,5,5")], IMAGE, F32, group=8, pads=[2, 2, 2, 2], strides=[2, 2], _tol=16)
R("Conv", ["N,4,H,W", W("8,1,3,3")], IMAGE, F32, group=4, pads=[1, 1, 1, 1], _tol=16)
R("Conv", ["N,12,H,W", W("18,4,3,3"), W("18")], IMAGE, F32, group=3, pads=[1, 1, 1, 1], _tol=32)
R("Conv", ["N,3,H,W", W("4,3,3,3")], IMAGE, F32, auto_pad="SAME_UPPER", strides=[2, 2], _tol=32)
R("Conv", ["N,3,H,W", W("4,3,2,2")], IMAGE, F32, auto_pad="SAME_LOWER", _tol=32)
R("Conv", ["N,3,H,W", W("4,3,2,2")], IMAGE, F32, auto_pad="VALID", _tol=32)
R("Conv", ["N,C,H,W", "M,C,3,3", "M"], [(2, 3, 7, 9, 4), (1, 1, 8, 8, 1), (1, 16, 9, 16, 17), (0, 3, 8, 8, 2)], F32,
  pads=[1, 1, 1, 1], _tol=32)
R("Conv", ["N,C,H,W", "M,C,1,1"], [(2, 3, 7, 9, 4), (1, 1, 8, 8, 1), (1, 16, 9, 16, 17)], F32, _tol=32)
R("Conv", ["N,4,L", W("6,4,3"), W("6")], [(2, 9), (1, 64), (1, 3)], F32, pads=[1, 1], _tol=16)
R("Conv", ["N,4,L", W("4,1,3")], [(2, 9), (1, 64)], F32, pads=[1, 1], group=4, _tol=16)
R("Conv", ["N,2,D,H,W", W("3,2,3,3,3")], [(1, 5, 6, 7), (2, 3, 3, 3)], F32, pads=[1, 1, 1, 1, 1, 1], _tol=16)
R("Conv", ["N,16,H,W", W("16,16,3,3"), W("16")], IMAGE[:3], ["f64", *HALVES], pads=[1, 1, 1, 1], _tol=64)
R("ConvTranspose", ["N,3,H,W", W("3,5,3,3"), W("5")], IMAGE, F32, _tol=32)
R("ConvTranspose", ["N,3,H,W", W("3,5,2,2")], IMAGE, F32, strides=[2, 2], _tol=32)
R("ConvTranspose", ["N,4,H,W", W("4,3,3,3")], IMAGE, F32, group=2, strides=[2, 2], pads=[1, 1, 1, 1],
  output_padding=[1, 1], _tol=32)
R("ConvTranspose", ["N,3,H,W", W("3,2,3,3")], IMAGE[:3], F32, dilations=[2, 2], _tol=32)
R("ConvTranspose", ["N,3,L", W("3,2,3")], [(2, 9), (1, 1)], F32, _tol=32)
for outputs, kernel, stride, pads, more in [(17, 2, 2, 0, 0), (3, 2, 2, 0, 0), (20, 3, 2, 1, 1), (1, 5, 3, 2, 2),
                                            (33, 4, 2, 1, 0), (7, 1, 3, 0, 0), (18, 3, 1, 1, 0)]:
    R("ConvTranspose", ["N,5,H,W", W(f"5,{outputs},{kernel},{kernel}"), W(f"{outputs}")], IMAGE, F32,
      strides=[stride] * 2, pads=[pads] * 4, output_padding=[more] * 2, _tol=32)
R("c = ConvTranspose <strides=[2,2]> (x0, x1, x2) r = Relu(c) y0 = ConvTranspose <strides=[2,2]> (r, x3, x4)",
  ["N,16,H,W", W("16,24,2,2"), W("24"), W("24,1,2,2"), W("1")], IMAGE, ["f32", "f16"], _tol=64)
R("c = ConvTranspose <strides=[1,2]> (x0, x1, x2) s = Sub(x5, c) r = Relu(s) y0 = ConvTranspose <strides=[2,3]> (r, x3, x4)",
  ["N,16,H,W", W("16,24,1,2"), W("24"), W("24,1,2,3"), W("1"), W("1")], IMAGE, F32, _tol=64)
R("c = ConvTranspose <strides=[2,1]> (x0, x1) r = Exp(c) d = ConvTranspose <strides=[1,3]> (r, x2, x3) y0 = Sigmoid(d)",
  ["N,5,H,W", W("5,9,2,1"), W("9,2,1,3"), W("2")], IMAGE, F32, _tol=64)
R("c = ConvTranspose <strides=[2,1]> (x0, x1) d = ConvTranspose <strides=[1,3]> (c, x2, x3) y0 = Sigmoid(d)",
  ["N,5,H,W", W("5,9,2,1"), W("9,2,1,3"), W("2")], IMAGE, F32, _tol=64)
R("ConvTranspose", ["N,8,H,W", W("8,11,3,3"), W("11")], IMAGE, ["f16"], strides=[2, 1], pads=[1, 0, 0, 1], _tol=16)
R("ConvTranspose", ["N,18,H,W", W("18,20,3,2"), W("20")], IMAGE, F32, strides=[2, 3], pads=[1, 0, 0, 1], _tol=32)
R("ConvInteger", [T("N,3,H,W", "extremes", "u8"), W("4,3,3,3", "extremes", "u8"), C(5, "u8")], IMAGE[:3], ["u8"],
  pads=[1, 1, 1, 1])
for channels in (32, 160):
    R("ConvInteger", [T(f"N,{channels},H,W", "extremes", "u8"), W(f"20,{channels},3,3", "extremes", "i8"), C(5, "u8")], IMAGE[:3],
      ["u8"], pads=[1, 1, 1, 1])

# What follows a convolution and may be taken into it.
# A few outputs beyond full blocks, or alone: sums in parts, and joined; with what is added, from old results.
for inputs, outputs, kernel in ((96, 18, 1), (70, 42, 1), (33, 3, 3), (64, 12, 1), (17, 34, 3), (40, 1, 2)):
    R("t = Conv(x0, x1) u = Conv(t, x2, x3) v = Add(u, x4) y0 = HardSwish(v)",
      [f"N,{inputs},H,W", W(f"{inputs},{inputs},1,1"), W(f"{outputs},{inputs},{kernel},{kernel}"), W(f"{outputs}"),
       W(f"{outputs},1,1")], [(1, 7, 31), (2, 5, 13), (1, 3, 61)], F32, _tol=128)

CONV = "t = Conv <pads=[1,1,1,1]> (x0, x1, x2) "
for rest in ("y0 = Relu(t)", "y0 = Sigmoid(t)", "y0 = HardSwish(t)", "s = Add(t, x0) y0 = Relu(s)",
             "s = Sigmoid(t) y0 = Mul(t, s)", "y0 = MaxPool <kernel_shape=[2,2], strides=[2,2]> (t)",
             "s = GlobalAveragePool(t) y0 = Mul(t, s)"):
    R(CONV + rest, ["N,16,H,W", W("16,16,3,3"), W("16")], IMAGE[:3], F32, _tol=32)
R("t = Conv <pads=[1,1,1,1]> (x0, x1) u = BatchNormalization(t, x2, x3, x4, x5) y0 = Relu(u)",
  ["N,8,H,W", W("16,8,3,3"), W("16"), W("16"), W("16"), W("16", "positive")], IMAGE[:3], F32, _tol=64)
R("t = MatMul(x0, x1) u = Add(t, x2) y0 = Gelu(u)", ["B,M,48", W("48,40"), W("40")], [(2, 7), (1, 1), (3, 33)], F32,
  _tol=32)
R("t = Conv(x0, x1) u = Conv(t, x2) y0 = Add(u, t)", ["N,8,H,W", W("8,8,1,1"), W("8,8,1,1")], IMAGE[:3], F32,
  _tol=64)

# ---- Chains that stay in blocks of channels from O2 on: edges of blocks and tiles, ops that follow ----
BLOCKS = [(1, 13, 14), (2, 7, 29), (1, 5, 61)]
for inputs, outputs in [(1, 31), (17, 5), (31, 64), (64, 33)]:
    R("t = Conv <pads=[1,0,2,1]> (x0, x1, x2) u = Relu(t) y0 = Conv <strides=[3,2]> (u, x3)",
      [f"N,{inputs},H,W", W(f"{outputs},{inputs},3,3"), W(f"{outputs}"), W(f"17,{outputs},1,1")], BLOCKS, F32, _tol=128)
R("t = Conv(x0, x1) u = Conv <group=48, pads=[1,1,1,1]> (t, x2) "
  "s = Sigmoid(u) v = Mul(u, s) w = Conv(v, x3) y0 = Add(w, t)",
  ["N,16,H,W", W("48,16,1,1"), W("48,1,3,3"), W("48,48,1,1")], BLOCKS, F32, _tol=64)
R("t = Conv <group=17, pads=[1,1,1,1], strides=[2,1]> (x0, x1) u = BatchNormalization(t, x2, x3, x4, x5) "
  "y0 = Clip(u, x6, x7)",
  ["N,17,H,W", W("17,1,3,3"), W("17"), W("17"), W("17"), W("17", "positive"), C(0.0, "f32"), C(6.0, "f32")], IMAGE, F32,
  _tol=64)
R("t = Conv <group=272, pads=[2,2,2,2]> (x0, x1) u = BatchNormalization(t, x2, x3, x4, x5) y0 = Relu(u)",
  ["N,272,H,W", W("272,1,5,5"), W("272"), W("272"), W("272"), W("272", "positive")], IMAGE[:3], F32, _tol=64)
R("t = Conv(x0, x1) p = GlobalAveragePool(t) q = Conv(p, x2) s = Sigmoid(q) y0 = Mul(t, s)",
  ["N,3,H,W", W("20,3,1,1"), W("20,20,1,1")], BLOCKS, F32, _tol=64)
R("t = Conv(x0, x1) u = Conv(x0, x2) c = Concat <axis=1> (t, u) y0 = MaxPool <kernel_shape=[3,2], pads=[1,0,1,1]> (c)",
  ["N,3,H,W", W("32,3,1,1"), W("5,3,1,1")], BLOCKS, F32, _tol=64)
# Channels joined in halves of blocks; the last part may end anywhere.
for parts in [(24, 8, 24), (8, 40, 5), (24, 24, 20), (40, 13)]:
    joined = " ".join(f"t{i} = Conv(x0, x{i + 1})" for i in range(len(parts)))
    names = ", ".join(f"t{i}" for i in range(len(parts)))
    R(f"{joined} c = Concat <axis=1> ({names}) u = Relu(c) y0 = Conv <pads=[1,1,1,1]> (u, x{len(parts) + 1})",
      ["N,3,H,W", *(W(f"{part},3,1,1") for part in parts), W(f"9,{sum(parts)},3,3")], BLOCKS, F32, _tol=128)
# One image several times: the half that follows another half of it need not be the next one.
R("t = Conv(x0, x1) c = Concat <axis=1> (t, t, t) u = Relu(c) y0 = Conv <pads=[1,1,1,1]> (u, x2)",
  ["N,3,H,W", W("24,3,1,1"), W("9,72,3,3")], BLOCKS, F32, _tol=128)
# Depthwise on an image without its border: windows cut off on either side, wider than the image, and outside of it.
for kernel, strides, pads in [("3,3", [1, 1], [1, 1, 1, 1]), ("5,5", [2, 2], [2, 2, 2, 2]), ("3,5", [2, 3], [0, 3, 2, 1]),
                              ("5,3", [1, 2], [7, 0, 1, 4]), ("7,9", [1, 1], [6, 8, 6, 8]), ("2,2", [1, 1], [0, 0, 1, 0])]:
    height, width = kernel.split(",")
    R(f"t = Relu(x0) u = Conv <group=33, strides={strides}, pads={pads}> (t, x1, x2) y0 = Clip(u, x3, x4)",
      ["N,33,H,W", W(f"33,1,{height},{width}"), W("33"), C(0.0, "f32"), C(6.0, "f32")],
      [(1, 13, 14), (2, 7, 31), (1, 3, 61), (1, 30, 5)], F32, _tol=64)
for pads, dilations, strides in [([2, 2, 2, 2], [1, 2], [1, 1]), ([5, 1, 3, 6], [3, 2], [2, 1]), ([2, 3, 4, 2], [2, 3], [1, 2])]:
    R(f"t = Conv <group=16, pads={pads}, dilations={dilations}, strides={strides}> (x0, x1) y0 = Relu(t)",
      ["N,16,H,W", W("16,1,3,3")], BLOCKS, F32, _tol=64)
# Rows of lengths that only the run knows, around those of all tiles that they may be cut into.
WIDTHS = [(1, 3, width) for width in (1, 2, 3, 4, 6, 7, 8, 9, 13, 15, 16, 17, 24, 25, 26, 27, 29, 30, 36, 43, 57)]
for kernel, options in [("3,3", "pads=[1,1,1,1]"), ("1,5", "pads=[0,2,0,2], strides=[1,2]"), ("2,4", "pads=[1,3,0,0]")]:
    R(f"t = Relu(x0) u = Conv <group=20, {options}> (t, x1) y0 = Relu(u)", ["N,20,H,W", W(f"20,1,{kernel}")],
      [at for at in WIDTHS if at[2] + 3 >= int(kernel[2])], F32, _static=False, _tol=64)
    R(f"t = Conv <{options}> (x0, x1) y0 = Relu(t)", ["N,3,H,W", W(f"24,3,{kernel}")],
      [at for at in WIDTHS if at[2] + 3 >= int(kernel[2])], F32, _static=False, _tol=64)
# Images of few channels as they come, without their border: overlapping windows, cut off on either side or outside.
for inputs, outputs, kernel, options in [(1, 24, "3,3", "strides=[2,2], pads=[1,1,1,1]"), (3, 100, "7,7", "strides=[2,2], pads=[3,3,3,3]"),
                                         (5, 18, "5,2", "strides=[1,3], pads=[0,1,4,0]"), (12, 42, "2,5", "dilations=[1,2], pads=[1,6,0,5]"),
                                         (15, 16, "1,3", "strides=[2,1], pads=[2,9,1,0]"), (4, 33, "3,1", "pads=[1,0,1,0]")]:
    R(f"t = Conv <{options}> (x0, x1, x2) y0 = Relu(t)", [f"N,{inputs},H,W", W(f"{outputs},{inputs},{kernel}"), W(f"{outputs}")],
      [(1, 13, 14), (2, 7, 31), (1, 9, 61)], F32, _tol=64)
# Blocks that are not full: neither are their sums taken nor their results computed in full.
for inner, kernel, options in [(24, "1,1", ""), (18, "3,3", "<pads=[1,1,1,1]>"), (42, "3,3", "<strides=[2,2], pads=[0,1,1,0]>"),
                               (12, "5,1", "<pads=[2,0,2,0]>"), (100, "1,1", "<strides=[1,2]>"), (5, "3,2", "<dilations=[2,1], pads=[2,1,2,0]>")]:
    R(f"t = Conv(x0, x1, x2) u = HardSwish(t) v = Conv {options} (u, x3) y0 = Sigmoid(v)",
      ["N,3,H,W", W(f"{inner},3,1,1"), W(f"{inner}"), W(f"{inner},{inner},{kernel}")], BLOCKS, F32, _tol=128)
# Normalised by variances down to 0.1: differences grow by what the values do.
for outputs in (1, 20):
    R("t = Conv(x0, x1) u = ConvTranspose <strides=[2,2]> (t, x2) v = Add(u, x3) w = BatchNormalization(v, x4, x4, x4, x5) "
      "y = Relu(w) y0 = ConvTranspose <strides=[2,2], pads=[1,0,0,1]> (y, x6)",
      ["N,3,H,W", W("24,3,1,1"), W(f"24,{outputs},2,2"), W(f"1,{outputs},1,1"), W(f"{outputs}"), W(f"{outputs}", "positive"),
       W(f"{outputs},{outputs},3,3")], BLOCKS, F32, _tol=512)
R("t = Conv <group=2> (x0, x1, x2) u = Relu(t) v = Conv <group=2, pads=[1,1,1,1]> (u, x3) y0 = Add(v, u)",
  ["N,32,H,W", W("64,16,1,1"), W("64"), W("64,32,3,3")], BLOCKS, F32, _tol=64)
R("t = Conv(x0, x1) u = Conv <group=2, pads=[1,1,1,1]> (t, x2) v = Mul(u, x3) y0 = Add(v, x4)",
  ["N,3,H,W", W("32,3,1,1"), W("64,16,3,3"), W("64,1,1"), W("1,64,1,1")], BLOCKS, F32, _tol=64)
# Weights that are denormal numbers and nothing else stay, for a factor behind the product; so does such a bias, and the
# result of a product of the whole constant on the left.
TINY = C([[5e-39, -7e-39, 9e-39], [-6e-39, 8e-39, 1e-38]], "f32")
R("t = MatMul(x0, x1) y0 = Mul(t, x2)", ["A,2", TINY, C(1e38, "f32")], [(1,), (4,), (33,)], F32,
  lambda x, w, s: x.astype(np.float64) @ w.astype(np.float64) * s, _tol=512)
R("t = MatMul(x1, x0) y0 = Mul(t, x2)", ["3,A", TINY, C(1e38, "f32")], [(1,), (4,), (33,)], F32,
  lambda x, w, s: w.astype(np.float64) @ x.astype(np.float64) * s, _tol=512)
R("t = Conv(x0, x1, x2) y0 = Mul(t, x3)", ["N,2,H,W", C([[[[0]], [[0]]]] * 3, "f32"), C([5e-39, -7e-39, 9e-39], "f32"),
                                            C(1e38, "f32")], [(1, 5, 5), (2, 3, 17)], F32,
  lambda x, w, b, s: np.broadcast_to(b[:, None, None].astype(np.float64) * s, (x.shape[0], 3, *x.shape[2:])), _tol=512)
