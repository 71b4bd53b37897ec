// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// The reduction runs down the columns: rows are not contiguous, and nothing is fused to it.
//
// CHECK-NOT: rows_
// CHECK: "reduction"

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#t = affine_map<(i, j) -> (j, i)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<64x96xf32>) -> tensor<96xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<96xf32>
  %i = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<96xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<96xf32>
  %y = linalg.generic {indexing_maps = [#t, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x96xf32>) outs(%i : tensor<96xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.addf %l, %o : f32
    linalg.yield %s : f32
  } -> tensor<96xf32>
  return %y : tensor<96xf32>
}
