// RUN: o3-opt --target x86-64-v4 --level 2 --fuse --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// RUN: sed 's/16x32x32x16/2x32x32x16/g; s/16x1x16x16/2x1x16x16/g' %s | o3-opt --target x86-64-v4 --level 2 --fuse --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels - | FileCheck %s --check-prefix=NEAR
// A tile asks for the other summand of its pixels, a line each, of an image that the cache does not hold beside the result.
//
// CHECK-LABEL: func.func @main
// CHECK: memref.prefetch %{{.*}}, read, locality<2>, data : memref<?xf32>
// CHECK: call @o3k_f32_tile_
// CHECK: arith.addf
// NEAR-LABEL: func.func @main
// NEAR-NOT: memref.prefetch
// NEAR: call @o3k_f32_tile_
// NEAR-NOT: memref.prefetch
// NEAR: arith.addf

#id = affine_map<(c, h, w, l) -> (c, h, w, l)>
#x = affine_map<(c, h, w, l, i, k) -> (i, h, w, k)>
#w = affine_map<(c, h, w, l, i, k) -> (c, i, k, l)>
#y = affine_map<(c, h, w, l, i, k) -> (c, h, w, l)>

func.func @main(%x: tensor<1x32x32x16xf32>, %w: tensor<16x1x16x16xf32>, %r: tensor<16x32x32x16xf32>) -> tensor<16x32x32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32x32x16xf32>
  %init = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<16x32x32x16xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<16x32x32x16xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<1x32x32x16xf32>, tensor<16x1x16x16xf32>) outs(%init : tensor<16x32x32x16xf32>) {
  ^bb0(%l: f32, %k: f32, %o: f32):
    %m = arith.mulf %l, %k : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<16x32x32x16xf32>
  %q = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p, %r : tensor<16x32x32x16xf32>, tensor<16x32x32x16xf32>) outs(%e : tensor<16x32x32x16xf32>) {
  ^bb0(%l: f32, %k: f32, %o: f32):
    %s = arith.addf %l, %k : f32
    linalg.yield %s : f32
  } -> tensor<16x32x32x16xf32>
  return %q : tensor<16x32x32x16xf32>
}
