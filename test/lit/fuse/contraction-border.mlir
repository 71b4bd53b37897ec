// RUN: o3-opt --target x86-64-v4 --fuse --level 2 %s | FileCheck %s
// A depthwise convolution takes its input without the border of zeros, and cuts its windows off instead: rows in
// the loop around the tiles, columns in tiles that are made for the row's ends.
//
// RUN: o3-opt --target x86-64-v4 --level 2 --fuse --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s --check-prefix=LOOPS
//
// CHECK-LABEL: func.func @main
// CHECK: call @k0_contraction_{{.*}}(%{{.*}}) : (tensor<2x7x30x16xf32>,
// CHECK-NOT: linalg.generic
// CHECK: return
// CHECK: func.func private @k0_contraction_
// CHECK: tensor.extract
// CHECK: "reduction", "reduction"
//
// LOOPS-LABEL: func.func @main
// LOOPS-NOT: memref<2x9x32x16xf32>
// LOOPS: arith.maxsi
// LOOPS: arith.minsi
// LOOPS: call @o3k_f32_lanes_10x16_s16_u3_t16_16to
// LOOPS: call @o3k_f32_lanes_10x16_s16_u3_t16_0to177
// LOOPS: call @o3k_f32_lanes_10x16_s16_u3_t16_0to176

#id = affine_map<(c, h, w, l) -> (c, h, w, l)>
#x = affine_map<(c, h, w, l, i, j) -> (c, h + i, w + j, l)>
#w = affine_map<(c, h, w, l, i, j) -> (c, i, j, l)>
#y = affine_map<(c, h, w, l, i, j) -> (c, h, w, l)>

func.func @main(%x: tensor<2x7x30x16xf32>, %w: tensor<2x3x3x16xf32>) -> tensor<2x7x30x16xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %height = arith.constant 7 : index
  %width = arith.constant 30 : index
  %last_row = arith.constant 6 : index
  %last = arith.constant 29 : index
  %p = tensor.empty() : tensor<2x9x32x16xf32>
  %e = tensor.empty() : tensor<2x7x30x16xf32>
  %padded = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%p : tensor<2x9x32x16xf32>) {
  ^bb0(%o: f32):
    %c = linalg.index 0 : index
    %h = linalg.index 1 : index
    %v = linalg.index 2 : index
    %l = linalg.index 3 : index
    %h1 = arith.subi %h, %c1 : index
    %in_h = arith.cmpi ult, %h1, %height : index
    %h2 = arith.minsi %h1, %last_row : index
    %h3 = arith.maxsi %h2, %c0 : index
    %v1 = arith.subi %v, %c1 : index
    %in_v = arith.cmpi ult, %v1, %width : index
    %both = arith.andi %in_h, %in_v : i1
    %v2 = arith.minsi %v1, %last : index
    %v3 = arith.maxsi %v2, %c0 : index
    %read = tensor.extract %x[%c, %h3, %v3, %l] : tensor<2x7x30x16xf32>
    %r = arith.select %both, %read, %zero : f32
    linalg.yield %r : f32
  } -> tensor<2x9x32x16xf32>
  %init = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x7x30x16xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<2x7x30x16xf32>
  %d = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%padded, %w : tensor<2x9x32x16xf32>, tensor<2x3x3x16xf32>) outs(%init : tensor<2x7x30x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<2x7x30x16xf32>
  return %d : tensor<2x7x30x16xf32>
}
