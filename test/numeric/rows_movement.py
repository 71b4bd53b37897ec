"""Ops that move data or make it: reshape, transpose, slice, pad, concat, split, expand, tile, range, resize."""

import numpy as np

from numeric_row import ALL, ELEMENTWISE, F32, NONE, SOME, C, R, T, W

PLANES = [(3, 5, 7), (1, 1, 1), (2, 33, 16), (4, 16, 65), (0, 3, 4)]

R("Reshape", ["A,B,4", C([0, -1])], ELEMENTWISE[:6], SOME, lambda x, s: x.reshape(x.shape[0], -1))
R("Reshape", ["A,B", C([-1])], ELEMENTWISE, F32, lambda x, s: x.reshape(-1))
R("Reshape", ["A,6", C([-1, 2, 3])], [(5,), (1,), (0,), (64,)], F32, lambda x, s: x.reshape(-1, 2, 3))
R("Reshape", ["0,6", C([3, 0])], [()], F32, lambda x, s: x.reshape(3, 0), allowzero=1)
R("s = Shape(x1) y0 = Reshape <allowzero=1> (x0, s)", ["A,B", "B,A"], ELEMENTWISE, F32, lambda x, y: x.reshape(y.shape))
R("Flatten", ["A,B,C"], PLANES, F32, lambda x: x.reshape(x.shape[0], x.shape[1] * x.shape[2]), axis=1)
R("Flatten", ["A,B,C"], PLANES, F32, lambda x: x.reshape(-1, x.shape[2]), axis=-1)
R("Flatten", ["A,B,C"], PLANES, F32, lambda x: x.reshape(1, -1), axis=0)
R("Squeeze", ["A,1,B", C([1])], ELEMENTWISE, SOME, lambda x, _: x[:, 0])
R("Squeeze", ["3,1,5,1"], [()], F32, np.squeeze)
R("Unsqueeze", ["A,B", C([0, 2, -1])], ELEMENTWISE, SOME, lambda x, _: x[None, :, None, :, None])
R("Squeeze", ["A,1,B"], ELEMENTWISE, F32, lambda x: x[:, 0], axes=[1], _opset=11)
R("Unsqueeze", ["A,B"], ELEMENTWISE, F32, lambda x: x[:, None], axes=[1], _opset=11)
for perm in ([1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]):
    R("Transpose", ["A,B,C"], PLANES, F32, lambda x, p=perm: x.transpose(p), perm=perm)
R("Transpose", ["A,B"], ELEMENTWISE, ALL, np.transpose)
R("Transpose", ["N,C,H,W"], [(2, 3, 7, 9), (1, 16, 8, 8)], SOME, lambda x: x.transpose(0, 2, 3, 1), perm=[0, 2, 3, 1])
R("Shape", ["A,B,C"], PLANES, SOME, lambda x: np.array(x.shape))
R("Shape", ["A,B,C"], PLANES, F32, lambda x: np.array(x.shape[1:-1]), start=1, end=-1)
R("Size", ["A,B,C"], PLANES, F32, lambda x: np.array(x.size))

for axis in (0, 1, -1):
    R("Concat", ["A,B,C", "A,B,C"], PLANES, F32, lambda *x, a=axis: np.concatenate(x, a), axis=axis)
R("Concat", ["A,B", "A,C", "A,D"], [(3, 1, 5, 7), (1, 16, 0, 33), (4, 4, 4, 4)], SOME, lambda *x: np.concatenate(x, 1), axis=1)
R("Concat", ["A,B"], [(3, 5)], F32, lambda x: x, axis=0)
R("Split", ["A,12", C([3, 4, 5])], [(3,), (1,), (0,), (33,)], SOME, lambda x, s: np.split(x, [3, 7], 1), axis=1, _outputs=3)
R("Split", ["A,12"], [(3,), (1,), (33,)], F32, lambda x: np.split(x, 3, 1), axis=1, num_outputs=3, _outputs=3)
R("Split", ["A,7"], [(3,)], F32, lambda x: [x[:, :3], x[:, 3:6], x[:, 6:]], axis=-1, num_outputs=3, _outputs=3)
R("Split", ["A,12"], [(3,)], F32, lambda x: np.split(x, [4], 1), axis=1, split=[4, 8], _outputs=2, _opset=11)
R("Split", ["4,B"], [(3,), (0,)], F32, lambda x: np.split(x, 2, 0), axis=0, num_outputs=2, _outputs=2)

R("Slice", ["A,12", C([1]), C([9]), C([1]), C([2])], [(3,), (1,), (0,)], SOME, lambda x, *_: x[:, 1:9:2])
R("Slice", ["A,B", C([1]), C([2**62]), C([0])], [(3, 5), (1, 1), (33, 2)], F32, lambda x, *_: x[1:])
R("Slice", ["A,B", C([-3]), C([2**62]), C([1])], [(3, 5), (2, 3), (1, 64)], F32, lambda x, *_: x[:, -3:])
R("Slice", ["A,12", C([-1]), C([-(2**62)]), C([1]), C([-1])], [(3,), (1,)], F32, lambda x, *_: x[:, ::-1])
R("Slice", ["12,12", C([1, 2]), C([5, -2])], [()], F32, lambda x, *_: x[1:5, 2:-2])
R("Slice", ["12,12", C([8, 2]), C([2, 100]), C([0, 1]), C([-3, 4])], [()], F32, lambda x, *_: x[8:2:-3, 2::4])
R("Slice", ["12,B"], [(5,), (1,)], F32, lambda x: x[2:10], axes=[0], starts=[2], ends=[-2], _opset=9)
R("Slice", ["12,B", C([5]), C([5]), C([0])], [(5,)], F32, lambda x, *_: x[5:5])

PADS = [(3, 5), (4, 33), (7, 4)]
for mode, numpy_mode in [("constant", "constant"), ("reflect", "reflect"), ("edge", "edge"), ("wrap", "wrap")]:
    R("Pad", ["A,B", C([1, 2, 0, 1])], PADS, F32, lambda x, p, m=numpy_mode: np.pad(x, [(1, 0), (2, 1)], m), mode=mode,
      _opset=19)
R("Pad", ["A,B", C([1, 0, 0, 3]), C(2.5, "f32")], [*ELEMENTWISE], F32,
  lambda x, *_: np.pad(x, [(1, 0), (0, 3)], constant_values=2.5))
R("Pad", ["A,B", C([1, 0, 0, 3]), T("", "unit")], PADS, ["f16", "f64", "i32", "u8"],
  lambda x, p, v: np.pad(x, [(1, 0), (0, 3)], constant_values=v.item()))
R("Pad", ["A,B", C([-1, 2, 0, -1])], PADS, F32, lambda x, _: np.pad(x[1:, :-1], [(0, 0), (2, 0)]))
R("Pad", ["A,B", C([2, 1]), NONE, C([1])], PADS, F32, lambda x, *_: np.pad(x, [(0, 0), (2, 1)]), _opset=19)
R("Pad", ["A,B"], PADS, F32, lambda x: np.pad(x, [(1, 0), (0, 1)], constant_values=1.5), pads=[1, 0, 0, 1], value=1.5,
  _opset=9)

R("Expand", ["A,1", C([2, 1, 5])], [(3,), (1,), (0,)], SOME, lambda x, _: np.broadcast_to(x, (2, x.shape[0], 5)))
R("s = Shape(x1) y0 = Expand(x0, s)", ["B", "A,B"], ELEMENTWISE, F32, lambda x, y: np.broadcast_to(x, y.shape))
R("Tile", ["A,B", C([2, 3])], ELEMENTWISE, SOME, lambda x, _: np.tile(x, (2, 3)))
R("Tile", ["A,B", C([1, 0])], [(3, 5)], F32, lambda x, _: np.tile(x, (1, 0)))
R("s = Shape(x0) y0 = ConstantOfShape(s)", ["A,B"], ELEMENTWISE, F32, np.zeros_like)
R("Range", [C(1.0, "f32"), C(9.5, "f32"), C(1.5, "f32")], [], F32, lambda a, b, c: np.arange(1, 9.5, 1.5))
R("Range", [C(10), C(1), C(-3)], [], F32, lambda a, b, c: np.arange(10, 1, -3))
R("s = Shape <start=0, end=1> (x0) t = Squeeze(s) y0 = Range(x1, t, x2)", ["N,2", C(0), C(1)], [(7,), (1,), (0,)], F32,
  lambda x, *_: np.arange(x.shape[0]))
R("EyeLike", ["A,B"], [(3, 5), (1, 1), (33, 16)], F32, lambda x: np.eye(*x.shape, k=1), k=1)
for upper in (0, 1):
    R("Trilu", ["A,B,C"], PLANES[:4], [*F32, "i64"], lambda x, u=upper: np.triu(x) if u else np.tril(x), upper=upper)
    R("Trilu", ["A,B", C(-1)], [(5, 5), (3, 7)], F32, lambda x, k, u=upper: np.triu(x, -1) if u else np.tril(x, -1), upper=upper)
R("DepthToSpace", ["N,8,H,W"], [(2, 3, 5), (1, 1, 1)], F32, blocksize=2)
R("DepthToSpace", ["N,8,H,W"], [(2, 3, 5)], F32, blocksize=2, mode="CRD")
R("SpaceToDepth", ["N,3,4,6"], [(2,), (1,)], F32, blocksize=2)

R("Resize", ["N,3,H,W", NONE, C([1, 1, 2, 2], "f32")], [(1, 4, 5), (2, 1, 7)], F32, mode="nearest", _tol=8)
R("Resize", ["N,3,H,W", NONE, C([1, 1, 2, 2], "f32")], [(1, 4, 5), (2, 1, 7)], F32, mode="nearest",
  coordinate_transformation_mode="asymmetric", nearest_mode="floor", _tol=8)
R("Resize", ["N,3,H,W", NONE, C([1, 1, 2, 3], "f32")], [(1, 4, 5), (2, 1, 7)], F32, mode="linear", _tol=16)
R("Resize", ["N,3,H,W", NONE, C([1, 1, 0.5, 0.5], "f32")], [(1, 4, 6), (2, 8, 10)], F32, mode="linear", _tol=16)
R("Resize", ["N,3,H,W", NONE, C([1, 1, 2, 2], "f32")], [(1, 4, 5)], F32, mode="cubic", _tol=32)
R("Resize", ["1,3,5,7", NONE, NONE, C([1, 3, 9, 4])], [()], F32, mode="linear",
  coordinate_transformation_mode="align_corners", _tol=16)
R("Upsample", ["N,3,H,W", C([1, 1, 2, 2], "f32")], [(1, 4, 5)], F32, mode="nearest", _opset=9)

# ---- By index ----
for axis in (0, 1, -1):
    R("Gather", ["A,B,C", T("3,2", f"index {'ABC'[axis]}", "i64")], [(3, 5, 7), (1, 1, 1), (2, 33, 16)], F32,
      lambda x, i, a=axis: np.take(x, i, a), axis=axis)
R("Gather", ["A,B", T("N", "index A", "i32")], [(3, 5, 7), (1, 64, 1), (33, 2, 16), (3, 5, 0)], SOME, lambda x, i: np.take(x, i, 0))
R("Gather", ["A,B", C(1)], [(3, 5)], F32, lambda x, i: x[1])
R("Gather", [W("50,16"), T("N,M", "index 50", "i64")], [(2, 7), (1, 1), (0, 3)], F32, lambda w, i: w[i])
R("GatherElements", ["A,B", T("A,C", "index B", "i64")], [(3, 5, 7), (1, 1, 1), (4, 16, 3)], SOME,
  lambda x, i: np.take_along_axis(x, i, 1), axis=1)
R("GatherND", ["A,B,C", T("N,2", "index 2", "i64")], [(3, 5, 7, 4), (2, 2, 2, 1)], F32, lambda x, i: x[i[:, 0], i[:, 1]])


def scatter_rows(x, i, u):
    y = x.copy()
    y[i[:, 0]] = u
    return y


R("ScatterND", ["6,B", C([[4], [1], [3]]), "3,B"], [(5,), (1,), (33,)], F32, scatter_rows)
R("ScatterND", ["6,B", C([[4], [1], [4]]), "3,B"], [(5,)], F32, reduction="add")
R("ScatterElements", ["3,5", C([[1, 3]]), "1,2"], [()], F32, axis=1)
R("ScatterElements", ["3,5", C([[1, 1]]), "1,2"], [()], F32, axis=1, reduction="add")
# ONNX Runtime crashes on no indices at all.
R("OneHot", [T("N", "index 6", "i64"), C(6), C([0.0, 2.5], "f32")], [(5,), (1,), (0,)], F32,
  lambda i, depth, values: np.where(np.arange(6) == (i % 6)[:, None], values[1], values[0]))
R("TopK", [T("A,B", "distinct"), C([3])], [(3, 5), (1, 3), (4, 33)], F32, _outputs=2)
R("TopK", [T("A,B", "distinct"), C([2])], [(3, 5), (1, 3), (4, 33)], F32, _outputs=2, largest=0)
R("NonZero", [T("A,B", "normal")], [(3, 5), (1, 1)], ["bool"], lambda x: np.array(np.nonzero(x)))
R("Compress", ["5,B", C([True, False, True, True, False], "bool")], [(3,)], F32, lambda x, c: np.compress(c, x, 0), axis=0)

# Parameters that only the run knows; a "bit" is 0 to 7.
R("s = Reshape(x1, x2) y0 = Slice(x0, s, x3, x4)", ["A,9", T("", "bit", "i64"), C([1]), C([2**62]), C([1])],
  [(3,), (1,), (33,)], SOME, lambda x, s, *_: x[:, s:])
R("s = Sub(x2, x1) y0 = Slice(x0, x3, x4, x5, s)", ["A,9", T("1", "bit", "i64"), C([-1]), C([7]), C([-(2**62)]), C([1])],
  [(3,), (1,)], F32, lambda x, s, *_: x[:, 7::-1 - s[0]])
R("p = Concat <axis=0> (x2, x1) y0 = Pad <mode=\"edge\"> (x0, p)", ["A,B", T("2", "bit", "i64"), C([1, -1])], PADS, F32,
  lambda x, p, _: np.pad(x[:, 1:], [(1, p[0]), (0, p[1])], "edge"))
R("Tile", ["A,B", T("2", "bit", "i64")], PADS, F32, np.tile)
R("n = Add(x1, x2) s = Concat <axis=0> (x2, x3, n) y0 = Reshape(x0, s)", ["840,A", T("1", "bit", "i64"), C([1]), C([-1])],
  [(1,), (3,)], F32, lambda x, n, *_: x.reshape(1, -1, n[0] + 1))

for reduction in ("add", "mul", "max", "min"):
    R("ScatterElements", ["4,B", C([[1, -2, 1], [0, 3, 0]]), "2,3"], [(3,), (7,)], ["f32", "f16", "i32", "u8"], axis=0,
      reduction=reduction, _static=True)
R("ScatterND", ["A,B,4", T("N,2", "index 2", "i64"), "N,4"], [(2, 2, 1), (5, 3, 1)], SOME)
R("GatherND", ["A,5,B", T("A,N,1", "index 5", "i64")], [(3, 7, 4), (1, 1, 1), (2, 16, 0)], SOME, batch_dims=1)
R("ReverseSequence", ["5,B,3", C([2, 5, 1, 1])], [(4,)], SOME, time_axis=0, batch_axis=1)
R("Unique", [T("A,B", "bit")], [(3, 5), (1, 1), (33, 16)], ["f32", "i64", "i8"], _outputs=4)
R("Unique", [T("A,B", "bit")], [(3, 5), (1, 1), (33, 16)], F32, _outputs=4, sorted=0)
R("Unique", [T("A,B", "class")], [(3, 5), (33, 2), (65, 1)], ["i64"], _outputs=4, axis=0)
R("TopK", [T("A,B,3", "extremes"), C([4])], [(3, 5), (1, 4), (2, 65)], ["i32", "i64"], _outputs=2, axis=1)
R("k = Reshape(x1, x2) y0, y1 = TopK(x0, k)", [T("A,B", "distinct"), T("", "bit", "i64"), C([1])], [(3, 8), (2, 1021)], F32)
R("NonZero", [T("A,B,3", "bit")], [(3, 5), (1, 1), (0, 4)], ["i32", "i64", "u8", "f32"], lambda x: np.array(np.nonzero(x)))
R("Compress", ["A,B", T("N", "normal", "bool")], [(3, 5, 7), (33, 2, 66)], F32, lambda x, c: np.compress(c, x))
