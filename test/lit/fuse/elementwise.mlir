// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// A value that is read twice on branches that join again is computed once, in one op.
//
// CHECK: func.func private @k0_elementwise_{{.*}}o3.reasons = ["elementwise, read by this kernel only", "elementwise, read by this kernel only", "elementwise"]
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: arith.negf
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#t = affine_map<(i, j) -> (j, i)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<64x96xf32>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = math.exp %l : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.negf %l : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<64x96xf32>, tensor<64x96xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %s = arith.mulf %l, %r : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}
