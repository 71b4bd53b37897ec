// RUN: o3-opt --target x86-64-v4 --cpu-contract %s | FileCheck %s
// RUN: o3-opt --target x86-64-v3 --cpu-contract %s | FileCheck %s --check-prefix=V3
// Products with 16 lanes innermost call register tiles; a border of zeros is copied by rows.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%s: !llvm.ptr, %x: memref<2x9x9x16xf32>, %w: memref<3x2x3x3x16x16xf32>,
                  %y: memref<3x7x7x16xf32>, %dw: memref<2x3x3x16xf32>, %dy: memref<2x7x7x16xf32>,
                  %a: memref<12x64xf32>, %b: memref<2x64x16xf32>, %c: memref<12x20xf32>,
                  %from: memref<2x7x7x16xf32>, %px: memref<2x30x16xf32>, %pw: memref<2x2x16x16xf32>,
                  %py: memref<2x30x16xf32>, %ra: memref<32x64xf32>, %rb: memref<3x64x16xf32>, %rc: memref<32x48xf32>) {
    // Rows of seven pixels: two blocks at once, the third alone. The run is one piece and so no dim of the loop:
    // canonicalization would drop it, and o3.work with it.
    // CHECK: scf.parallel (%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) =
    // CHECK: func.call @o3k_f32_tile_7x32_s16_u4
    // CHECK: func.call @o3k_f32_tile_7x16_s16_u4
    // V3: func.call @o3k_f32_tile_4x16_s16_u4
    // V3: func.call @o3k_f32_tile_3x16_s16_u4
    linalg.generic {indexing_maps = [affine_map<(m, h, w, l, c, i, j, k) -> (c, h + i, w + j, k)>,
                                     affine_map<(m, h, w, l, c, i, j, k) -> (m, c, i, j, k, l)>,
                                     affine_map<(m, h, w, l, c, i, j, k) -> (m, h, w, l)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction",
                                      "reduction", "reduction"]}
        ins(%x, %w : memref<2x9x9x16xf32>, memref<3x2x3x3x16x16xf32>) outs(%y : memref<3x7x7x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %m, %o : f32
      linalg.yield %r : f32
    }
    // A thread gets rows, and of them all blocks: an odd number of rows one by one.
    // CHECK: scf.parallel (%[[ROW:[a-z0-9]+]], %[[BLOCK:[a-z0-9]+]]) = (%{{.*}}) to (%c7{{[a-z0-9_]*}}, %c2{{[a-z0-9_]*}})
    // CHECK: func.call @o3k_f32_lanes_7x16_s16_u1
    linalg.generic {indexing_maps = [affine_map<(c, h, w, l, i, j) -> (c, h + i, w + j, l)>,
                                     affine_map<(c, h, w, l, i, j) -> (c, i, j, l)>,
                                     affine_map<(c, h, w, l, i, j) -> (c, h, w, l)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%x, %dw : memref<2x9x9x16xf32>, memref<2x3x3x16xf32>) outs(%dy : memref<2x7x7x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %m, %o : f32
      linalg.yield %r : f32
    }
    // Of the second block four columns exist.
    // CHECK: scf.parallel
    // CHECK: func.call @o3k_f32_tile_12x16_s64_u4
    // CHECK: func.call @o3k_f32_tile_masked_12x16_s64_u4
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                     affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>,
                                     affine_map<(m, n, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<12x64xf32>, memref<2x64x16xf32>) outs(%c : memref<12x20xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %m, %o : f32
      linalg.yield %r : f32
    }
    // Four tiles of three blocks share what they ask for.
    // CHECK: func.call @o3k_f32_tile_8x48_shared_s64_u4
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                     affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>,
                                     affine_map<(m, n, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%ra, %rb : memref<32x64xf32>, memref<3x64x16xf32>) outs(%rc : memref<32x48xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %m, %o : f32
      linalg.yield %r : f32
    }
    // 18 channels to 24: of the last block of inputs two are summed, of the last block of results half is computed.
    // CHECK: scf.parallel
    // CHECK: func.call @o3k_f32_tile_15x16_s16_u2({{.*}}, %c16{{[a-z0-9_]*}}, %c2{{[a-z0-9_]*}}, %c16{{[a-z0-9_]*}}) :
    // CHECK: func.call @o3k_f32_tile_15x16_h8z_s16_u2
    // V3: func.call @o3k_f32_tile_5x16_s16_u2
    // V3: func.call @o3k_f32_tile_10x16_h8z_s16_u2
    linalg.generic {indexing_maps = [affine_map<(m, p, l, c, k) -> (c, p, k)>,
                                     affine_map<(m, p, l, c, k) -> (m, c, k, l)>,
                                     affine_map<(m, p, l, c, k) -> (m, p, l)>],
                    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%px, %pw : memref<2x30x16xf32>, memref<2x2x16x16xf32>) outs(%py : memref<2x30x16xf32>)
        attrs = {o3.channels = array<i64: 18, 24>} {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %m, %o : f32
      linalg.yield %r : f32
    }
    // To 18 channels: the last two share a vector, eight sums or four each, and come right after the block before.
    // CHECK: scf.parallel
    // CHECK: func.call @o3k_f32_tile_15x16_s16_u4
    // CHECK: func.call @o3k_f32_tile_15x16_h2z_s16_u8
    // V3: func.call @o3k_f32_tile_10x16_h2z_s16_u4
    linalg.generic {indexing_maps = [affine_map<(m, p, l, c, k) -> (c, p, k)>,
                                     affine_map<(m, p, l, c, k) -> (m, c, k, l)>,
                                     affine_map<(m, p, l, c, k) -> (m, p, l)>],
                    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%px, %pw : memref<2x30x16xf32>, memref<2x2x16x16xf32>) outs(%py : memref<2x30x16xf32>)
        attrs = {o3.channels = array<i64: 32, 18>} {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %m, %o : f32
      linalg.yield %r : f32
    }
    // CHECK: scf.parallel
    // CHECK: vector.load %{{.*}} : memref<2x7x7x16xf32>, vector<16xf32>
    // CHECK: vector.store
    // CHECK-NOT: linalg.generic
    linalg.generic {indexing_maps = [affine_map<(c, h, w, l) -> (c, h, w, l)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%x : memref<2x9x9x16xf32>) {
    ^bb0(%o: f32):
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c6 = arith.constant 6 : index
      %c7 = arith.constant 7 : index
      %i = linalg.index 0 : index
      %h = linalg.index 1 : index
      %v = linalg.index 2 : index
      %l = linalg.index 3 : index
      %h1 = arith.subi %h, %c1 : index
      %v1 = arith.subi %v, %c1 : index
      %hin = arith.cmpi ult, %h1, %c7 : index
      %vin = arith.cmpi ult, %v1, %c7 : index
      %in = arith.andi %hin, %vin : i1
      %hm = arith.minsi %h1, %c6 : index
      %hc = arith.maxsi %hm, %c0 : index
      %vm = arith.minsi %v1, %c6 : index
      %vc = arith.maxsi %vm, %c0 : index
      %e = memref.load %from[%i, %hc, %vc, %l] : memref<2x7x7x16xf32>
      %r = arith.select %in, %e, %zero : f32
      linalg.yield %r : f32
    }
    return
  }
}
// Weights of the next two blocks are asked for, if they are near; those of one block a page ahead.
// CHECK-LABEL: func.func private @o3k_f32_tile_7x32_s16_u4
// CHECK: %[[NEXT:.*]] = arith.muli %arg4, %c2{{[a-z0-9_]*}} : index
// CHECK: %[[NEAR:.*]] = arith.cmpi ule, %[[NEXT]], %c16384{{[a-z0-9_]*}} : index
// CHECK: %[[AHEAD:.*]] = arith.select %[[NEAR]], %[[NEXT]], %c1024{{[a-z0-9_]*}} : index
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[AHEAD]] : index
// CHECK: memref.prefetch %arg2[%[[AT]]], read
// CHECK-LABEL: func.func private @o3k_f32_tile_7x16_s16_u4
// CHECK-NOT: arith.select {{.*}} %c1024
// CHECK: memref.prefetch %arg2
// In each turn of four steps a tile asks for the next step of its part of the next blocks, which lie a block's
// weights apart.
// CHECK-LABEL: func.func private @o3k_f32_tile_8x48_shared_s64_u4
// CHECK: %[[AHEAD:.*]] = arith.addi %arg5, %c0{{[a-z0-9_]*}} : index
// CHECK: %[[DONE:.*]] = arith.subi %{{.*}}, %arg3 : index
// CHECK: %[[LINE:.*]] = arith.divui %[[DONE]], %c4{{[a-z0-9_]*}} : index
// CHECK: %[[PART:.*]] = arith.addi %arg3, %[[AHEAD]] : index
// CHECK: %[[LINE0:.*]] = arith.addi %[[PART]], %[[LINE]] : index
// CHECK: memref.prefetch %arg2[%[[LINE0]]], read, locality<2>
// CHECK: %[[LINE1:.*]] = arith.addi %[[LINE0]], %arg4 : index
// CHECK: memref.prefetch %arg2[%[[LINE1]]], read, locality<2>
// CHECK: memref.prefetch %arg2
// CHECK-NOT: memref.prefetch
// CHECK: return
