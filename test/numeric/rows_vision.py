"""Ops of detectors, spatial transformers and signals, and quantised products."""

import numpy as np

from numeric_row import F32, HALVES, IMAGE, NONE, C, R, T, W

# ---- Sampling ----
for mode in ("linear", "nearest", "cubic"):
    for padding in ("zeros", "border", "reflection"):
        R("GridSample", ["N,2,H,W", T("N,4,5,2", "small")], [(1, 7, 9), (2, 1, 8), (1, 15, 1)], F32, mode=mode,
          padding_mode=padding, _opset=20, _tol=128)
R("GridSample", ["N,2,3,4,5", T("N,2,2,3,3", "unit")], [(1,), (2,)], F32, _opset=20, _tol=64)
R("Resize", ["N,3,H,W", NONE, NONE, C([2, 3, 9, 5])], [(2, 4, 7), (2, 1, 1)], F32, mode="linear",
  coordinate_transformation_mode="pytorch_half_pixel", _tol=32)
R("Resize", ["N,1,H,W", NONE, C([1, 1, 0.6, 0.7], "f32")], [(1, 10, 10), (2, 5, 7)], F32, mode="nearest",
  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
R("Resize", ["N,1,8,8", NONE, C([1, 1, 0.5, 0.5], "f32")], [(1,), (2,)], F32, mode="linear", antialias=1, _tol=32)
R("Resize", ["N,1,H,W", NONE, C([1, 1, 2, 2], "f32")], [(1, 4, 5)], ["u8"], mode="nearest")

# ---- Regions ----
R("RoiAlign", ["2,3,8,9", C([[0, 0, 3, 5], [1, 2, 7, 7.5]], "f32"), C([1, 0])], [()], F32, output_height=2,
  output_width=3, sampling_ratio=2, _opset=16, _tol=64)
R("RoiAlign", ["2,3,8,9", C([[0, 0, 3, 5], [1, 2, 7, 7.5]], "f32"), C([1, 0])], [()], F32, output_height=2,
  output_width=2, spatial_scale=0.5, _opset=10, _tol=64)
R("MaxRoiPool", ["N,3,8,9", C([[0, 0, 0, 3, 5], [0, 1, 2, 7, 7]], "f32")], [(1,), (2,)], F32, pooled_shape=[2, 3])
R("NonMaxSuppression", [T("N,B,4", "positive"), T("N,2,B", "distinct"), C([3]), C([0.3], "f32"), C([0.5], "f32")],
  [(1, 7), (2, 33), (1, 1)], F32)
R("NonMaxSuppression", [T("N,B,4", "positive"), T("N,2,B", "distinct"), C([1]), C([0.3], "f32"), C([0.5], "f32")],
  [(2, 16), (1, 1)], F32)
R("NonMaxSuppression", [T("N,B,4", "positive"), T("N,2,B", "distinct"), C([3]), C([0.3], "f32")], [(1, 7), (2, 16)],
  F32, center_point_box=1)
R("MaxUnpool", ["1,1,2,2", C([[[[5, 7], [13, 15]]]])], [()], F32, kernel_shape=[2, 2], strides=[2, 2])
R("CenterCropPad", ["A,B", C([4, 6])], [(7, 3), (4, 6), (1, 9)], F32, _opset=18)
R("Det", ["A,B,B"], [(2, 3), (1, 1), (3, 5)], F32, np.linalg.det, _tol=512)

# ---- Signals ----


def fourier(x, *_):
    y = np.fft.fft(x[..., 0], axis=1)
    return np.stack([y.real, y.imag], -1)


R("DFT", ["A,L,1"], [(2, 16), (1, 7), (3, 1)], [*F32, "f64"], fourier, axis=1, _opset=17, _tol=256)
R("DFT", ["A,L,1", NONE, C(1)], [(2, 16), (1, 7)], [*F32, *HALVES], fourier, _opset=20, _tol=256)
for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    R(op, [C(10)], [()], F32, _opset=17, _tol=32)
    R(op, [C(9)], [()], F32, periodic=0, _opset=17, _tol=32)

# ---- Quantised products: exact up to the last step ----
U8 = ["u8"]
R("QLinearConv", [T("N,3,H,W", "extremes"), C(0.02, "f32"), C(7, "u8"), W("4,3,3,3", "extremes", "i8"),
                  C([0.1, 0.2, 0.05, 0.3], "f32"), C([0, 0, 0, 0], "i8"), C(3.0, "f32"), C(100, "u8")], IMAGE[:3], U8,
  pads=[1, 1, 1, 1], strides=[2, 1])
R("QLinearMatMul", [T("M,K", "extremes"), C(0.02, "f32"), C(7, "u8"), T("K,N", "extremes", "i8"), C(0.1, "f32"),
                    C(0, "i8"), C(3.0, "f32"), C(100, "u8")], [(7, 13, 11), (1, 1, 1), (16, 33, 17)], U8)
R("ConvInteger", [T("N,4,H,W", "extremes"), W("4,1,3,3", "extremes", "i8")], IMAGE[:3], U8, group=4, pads=[1, 1, 1, 1])
