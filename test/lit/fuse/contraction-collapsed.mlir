// RUN: o3-opt --target x86-64-v4 --fuse --level 2 %s | FileCheck %s
// What is done with the joined result of a product is done before its dimensions are joined.
//
// CHECK-LABEL: func.func @main
// CHECK: call @k0_contraction_{{.*}} -> tensor<2x4x7x16xf32>
// CHECK-NEXT: tensor.collapse_shape
// CHECK-NEXT: return
// CHECK: func.func private @k0_contraction_
// CHECK: linalg.generic{{.*}}"reduction"
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: arith.maximumf

#x = affine_map<(g, m, p, l, k) -> (g, p, k)>
#w = affine_map<(g, m, p, l, k) -> (g, m, k, l)>
#y = affine_map<(g, m, p, l, k) -> (g, m, p, l)>
#wide = affine_map<(g, m, p, l) -> (g, m, p, l)>
#id = affine_map<(m, p, l) -> (m, p, l)>
#channels = affine_map<(m, p, l) -> (m, l)>

func.func @main(%x: tensor<2x7x16xf32>, %w: tensor<2x4x16x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x7x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x7x16xf32>
  %f = tensor.empty() : tensor<8x7x16xf32>
  %init = linalg.generic {indexing_maps = [#wide], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x4x7x16xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<2x4x7x16xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x7x16xf32>, tensor<2x4x16x16xf32>) outs(%init : tensor<2x4x7x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<2x4x7x16xf32>
  %c = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x4x7x16xf32> into tensor<8x7x16xf32>
  %q = linalg.generic {indexing_maps = [#id, #channels, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%c, %b : tensor<8x7x16xf32>, tensor<8x16xf32>) outs(%f : tensor<8x7x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %s = arith.addf %l, %r : f32
    linalg.yield %s : f32
  } -> tensor<8x7x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<8x7x16xf32>) outs(%f : tensor<8x7x16xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.maximumf %l, %zero : f32
    linalg.yield %s : f32
  } -> tensor<8x7x16xf32>
  return %y : tensor<8x7x16xf32>
}
