// RUN: o3-opt --target hopper --fuse --level 2 %s | FileCheck %s
// RUN: o3-opt --fuse --level 2 %s | FileCheck %s --check-prefix=CPU
// The channels of images come first: on a card, whose kernels have columns, the maximum over them and what follows are
// one kernel. Columns of two neighbours are not worth it where they are read again, the maximum is a kernel of its own;
// processors have rows only.
//
// CHECK-LABEL: func.func @main
// CHECK: call @k0_rows_{{.*}} -> tensor<4x19x100xf16>
// CHECK-NEXT: tensor.empty
// CHECK: call @k1_rows_{{.*}} -> tensor<4x2xf32>
// CHECK: call @k2_elementwise_
// CHECK: return
// CPU-NOT: rows_

#id = affine_map<(i, j, k) -> (i, j, k)>
#column = affine_map<(i, j, k) -> (i, k)>
#all = affine_map<(i, j) -> (i, j)>

func.func @main(%x: tensor<4x19x100xf16>, %few: tensor<4x19x2xf16>) -> (tensor<4x19x100xf16>, tensor<4x19x2xf16>) {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x100xf32>
  %i = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x100xf32>) {
  ^bb0(%o: f32):
    linalg.yield %low : f32
  } -> tensor<4x100xf32>
  %max = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x : tensor<4x19x100xf16>) outs(%i : tensor<4x100xf32>) {
  ^bb0(%l: f16, %o: f32):
    %w = arith.extf %l : f16 to f32
    %s = arith.maximumf %w, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x100xf32>
  %ye = tensor.empty() : tensor<4x19x100xf16>
  %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %max : tensor<4x19x100xf16>, tensor<4x100xf32>) outs(%ye : tensor<4x19x100xf16>) {
  ^bb0(%l: f16, %r: f32, %o: f16):
    %w = arith.extf %l : f16 to f32
    %d = arith.subf %w, %r : f32
    %s = arith.truncf %d : f32 to f16
    linalg.yield %s : f16
  } -> tensor<4x19x100xf16>
  %fe = tensor.empty() : tensor<4x2xf32>
  %fi = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<4x2xf32>) {
  ^bb0(%o: f32):
    linalg.yield %low : f32
  } -> tensor<4x2xf32>
  %fmax = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction", "parallel"]} ins(%few : tensor<4x19x2xf16>) outs(%fi : tensor<4x2xf32>) {
  ^bb0(%l: f16, %o: f32):
    %w = arith.extf %l : f16 to f32
    %s = arith.maximumf %w, %o : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32>
  %fye = tensor.empty() : tensor<4x19x2xf16>
  %fy = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%few, %fmax : tensor<4x19x2xf16>, tensor<4x2xf32>) outs(%fye : tensor<4x19x2xf16>) {
  ^bb0(%l: f16, %r: f32, %o: f16):
    %w = arith.extf %l : f16 to f32
    %d = arith.subf %w, %r : f32
    %s = arith.truncf %d : f32 to f16
    linalg.yield %s : f16
  } -> tensor<4x19x2xf16>
  return %y, %fy : tensor<4x19x100xf16>, tensor<4x19x2xf16>
}
