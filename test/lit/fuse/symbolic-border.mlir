// RUN: o3-opt --target x86-64-v4 --level 2 --fuse --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// Rows whose length only the run knows are read without a border, too: a tile that is cut off on the left, whole
// ones, and one that reads its last taps if they are inside. Which size of tiles is chosen before the loops.

// CHECK-LABEL: func.func @main
// CHECK-NOT: memref.alloc(
// CHECK: arith.ceildivui
// CHECK: scf.parallel
// CHECK: call @o3k_f32_lanes_14x16_s16_u3_t16_16to241(
// CHECK: scf.for
// CHECK: call @o3k_f32_lanes_14x16_s16_u3_t16_0to241(
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK: call @o3k_f32_lanes_14x16_s16_u3_t16_0to209late(
// CHECK: call @o3k_f32_lanes_7x16_s16_u3_t16_16to129(
// CHECK: func.func private @o3k_f32_lanes_14x16_s16_u3_t16_0to209late
// CHECK: vector.maskedload

#id = affine_map<(c, h, w, l) -> (c, h, w, l)>
#x = affine_map<(c, h, w, l, i, j) -> (c, h + i, w + j, l)>
#w = affine_map<(c, h, w, l, i, j) -> (c, i, j, l)>
#y = affine_map<(c, h, w, l, i, j) -> (c, h, w, l)>

func.func @main(%x: tensor<2x?x?x16xf32>, %w: tensor<2x3x3x16xf32>) -> tensor<2x?x?x16xf32>
    attributes {o3.symbols = [], o3.guards = []} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %h = tensor.dim %x, %c1 : tensor<2x?x?x16xf32>
  %v = tensor.dim %x, %c2 : tensor<2x?x?x16xf32>
  %hp = arith.addi %h, %c2 : index
  %vp = arith.addi %v, %c2 : index
  %hl = arith.subi %h, %c1 : index
  %vl = arith.subi %v, %c1 : index
  %pe = tensor.empty(%hp, %vp) : tensor<2x?x?x16xf32>
  %p = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%pe : tensor<2x?x?x16xf32>) {
  ^bb0(%o: f32):
    %i0 = linalg.index 0 : index
    %i1 = linalg.index 1 : index
    %i2 = linalg.index 2 : index
    %i3 = linalg.index 3 : index
    %r = arith.subi %i1, %c1 : index
    %r1 = arith.minsi %r, %hl : index
    %r2 = arith.maxsi %r1, %c0 : index
    %s = arith.subi %i2, %c1 : index
    %s1 = arith.minsi %s, %vl : index
    %s2 = arith.maxsi %s1, %c0 : index
    %a = arith.cmpi ult, %r, %h : index
    %b = arith.cmpi ult, %s, %v : index
    %in = arith.andi %a, %b : i1
    %e = tensor.extract %x[%i0, %r2, %s2, %i3] : tensor<2x?x?x16xf32>
    %q = arith.select %in, %e, %zero : f32
    linalg.yield %q : f32
  } -> tensor<2x?x?x16xf32>
  %ye = tensor.empty(%h, %v) : tensor<2x?x?x16xf32>
  %z = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%ye : tensor<2x?x?x16xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<2x?x?x16xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x?x?x16xf32>, tensor<2x3x3x16xf32>) outs(%z : tensor<2x?x?x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<2x?x?x16xf32>
  return %y : tensor<2x?x?x16xf32>
}
