// RUN: o3-opt --target hopper --fuse --level 2 %s | FileCheck %s
// RUN: o3-opt --target turing --fuse --level 2 %s | FileCheck %s
// Where a fast kernel keeps the sums in registers, the result may be of another type than they are.
//
// CHECK: func.func private @k0_contraction_{{.*}}tensor<64x96xf16>{{.*}} -> tensor<64x96xf16>
// CHECK: %[[SUMS:.*]] = tensor.empty() : tensor<64x96xf32>
// CHECK: linalg.generic{{.*}}"reduction"
// CHECK: arith.truncf

#id = affine_map<(i, j) -> (i, j)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<64x32xf16>, %w: tensor<32x96xf16>) -> tensor<64x96xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %h = tensor.empty() : tensor<64x96xf16>
  %init = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<64x96xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<64x96xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x32xf16>, tensor<32x96xf16>) outs(%init : tensor<64x96xf32>) {
  ^bb0(%l: f16, %r: f16, %o: f32):
    %lf = arith.extf %l : f16 to f32
    %rf = arith.extf %r : f16 to f32
    %m = arith.mulf %lf, %rf : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x96xf32>) outs(%h : tensor<64x96xf16>) {
  ^bb0(%l: f32, %o: f16):
    %t = arith.truncf %l : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x96xf16>
  return %y : tensor<64x96xf16>
}
