// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// An exponential for each row is not computed again for each element of the row.
//
// CHECK-DAG: func.func private @k0_elementwise_{{.*}}o3.reasons = ["elementwise"]
// CHECK-DAG: func.func private @k1_elementwise_{{.*}}o3.stop = "{{.*}}

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#t = affine_map<(i, j) -> (j, i)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<64x96xf32>, %v: tensor<64xf32>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %f = tensor.empty() : tensor<64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%v : tensor<64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = math.exp %l : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %p : tensor<64x96xf32>, tensor<64xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %s = arith.mulf %l, %r : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}
