// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// Transpositions of a product's operands and of its result are part of it; two in a row, too. What a later op
// reads besides stays.
//
// CHECK: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
// CHECK: #[[Y:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
// CHECK-LABEL: func.func @main
// CHECK-NEXT: tensor.empty() : tensor<2x5x3x7xf32>
// CHECK-NEXT: call @k0_contraction_
// CHECK-NEXT: return
// CHECK: func.func private @k0_contraction_
// CHECK-SAME: o3.reasons = ["the product reads through its order of dimensions", "the product reads through its order of dimensions", "product", "the product writes in its order of dimensions"]
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[K]], #[[Y]]]
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<2x3x5x8xf32>, tensor<2x7x3x8xf32>)

#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
#heads = affine_map<(a, b, c, d) -> (a, c, b, d)>
#turn = affine_map<(a, b, c, d) -> (a, b, d, c)>

func.func @main(%q: tensor<2x3x5x8xf32>, %k: tensor<2x7x3x8xf32>) -> tensor<2x5x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x3x7x8xf32>
  %k0 = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x7x3x8xf32>) outs(%e0 : tensor<2x3x7x8xf32>) {
  ^bb0(%l: f32, %o: f32):
    linalg.yield %l : f32
  } -> tensor<2x3x7x8xf32>
  %e1 = tensor.empty() : tensor<2x3x8x7xf32>
  %k1 = linalg.generic {indexing_maps = [#turn, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<2x3x7x8xf32>) outs(%e1 : tensor<2x3x8x7xf32>) {
  ^bb0(%l: f32, %o: f32):
    linalg.yield %l : f32
  } -> tensor<2x3x8x7xf32>
  %e2 = tensor.empty() : tensor<2x3x5x7xf32>
  %init = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e2 : tensor<2x3x5x7xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<2x3x5x7xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (b, h, k, n)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %k1 : tensor<2x3x5x8xf32>, tensor<2x3x8x7xf32>) outs(%init : tensor<2x3x5x7xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x3x5x7xf32>
  %e3 = tensor.empty() : tensor<2x5x3x7xf32>
  %y = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<2x3x5x7xf32>) outs(%e3 : tensor<2x5x3x7xf32>) {
  ^bb0(%l: f32, %o: f32):
    linalg.yield %l : f32
  } -> tensor<2x5x3x7xf32>
  return %y : tensor<2x5x3x7xf32>
}
