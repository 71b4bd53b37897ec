// RUN: o3-opt --target x86-64-v4 --level 2 --fuse --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// What needs the sums alone is done in the tile, whose name tells that it is; no loop follows the calls.
//
// CHECK-LABEL: func.func @main
// CHECK: call @o3k_f32_lanes_4x16_s32_u1_a[[HASH:[0-9a-f]+]](
// CHECK-NOT: arith.maximumf
// CHECK: func.func private @o3k_f32_lanes_4x16_s32_u1_a[[HASH]]
// CHECK-COUNT-4: arith.maximumf

#id = affine_map<(c, h, w, l) -> (c, h, w, l)>
#bias = affine_map<(c, h, w, l) -> (c, l)>
#x = affine_map<(c, h, w, l, i, j) -> (c, h * 2 + i, w * 2 + j, l)>
#w = affine_map<(c, h, w, l, i, j) -> (c, i, j, l)>
#y = affine_map<(c, h, w, l, i, j) -> (c, h, w, l)>

func.func @main(%x: tensor<2x9x9x16xf32>, %w: tensor<2x3x3x16xf32>, %b: tensor<2x16xf32>) -> tensor<2x4x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x4x16xf32>
  %init = linalg.generic {indexing_maps = [#bias, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%b : tensor<2x16xf32>) outs(%e : tensor<2x4x4x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<2x4x4x16xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<2x9x9x16xf32>, tensor<2x3x3x16xf32>) outs(%init : tensor<2x4x4x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<2x4x4x16xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<2x4x4x16xf32>) outs(%e : tensor<2x4x4x16xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.maximumf %l, %zero : f32
    linalg.yield %s : f32
  } -> tensor<2x4x4x16xf32>
  return %q : tensor<2x4x4x16xf32>
}
