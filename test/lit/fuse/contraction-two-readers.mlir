// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// The product has a second reader: it must be complete in memory, and the bias is a kernel of its own.
//
// CHECK-DAG: func.func private @k0_contraction_{{.*}}o3.reasons = ["product"], o3.stop = "{{.*}}: another kernel reads a value on the way to it"
// CHECK-DAG: func.func private @k1_elementwise_

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#t = affine_map<(i, j) -> (j, i)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x96xf32>, %v: tensor<96xf32>) -> (tensor<64x96xf32>, tensor<64x96xf32>) {
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
  %q = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %v : tensor<64x96xf32>, tensor<96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %s = arith.addf %l, %r : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<64x96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.maximumf %l, %zero : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  return %y, %p : tensor<64x96xf32>, tensor<64x96xf32>
}
