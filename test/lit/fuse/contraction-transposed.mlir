// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// The reader writes in another order than it reads: not an epilogue.
//
// CHECK-DAG: func.func private @k0_contraction_{{.*}}o3.stop = "{{.*}}: it reads the product in another order than it writes"
// CHECK-DAG: func.func private @k1_elementwise_

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#t = affine_map<(i, j) -> (j, i)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x96xf32>) -> tensor<96x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %init = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<64x96xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<64x96xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x32xf32>, tensor<32x96xf32>) outs(%init : tensor<64x96xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  %f = tensor.empty() : tensor<96x64xf32>
  %y = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x96xf32>) outs(%f : tensor<96x64xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.maximumf %l, %zero : f32
    linalg.yield %s : f32
  } -> tensor<96x64xf32>
  return %y : tensor<96x64xf32>
}
