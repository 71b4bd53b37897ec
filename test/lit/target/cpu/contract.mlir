// RUN: o3-opt --target x86-64-v3 --cpu-contract %s | FileCheck %s
// Matrix products and convolutions call the packed kernel; what has too few rows does not.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%s: !llvm.ptr, %a: memref<?x64xf32>, %b: memref<64x32xf32>, %c: memref<?x32xf32>,
                  %x: memref<1x8x10x10xf32>, %w: memref<16x8x3x3xf32>, %y: memref<1x16x8x8xf32>,
                  %dx: memref<1x8x10x10xf32>, %dw: memref<8x3x3xf32>, %dy: memref<1x8x8x8xf32>) {
    // CHECK: scf.parallel
    // CHECK: func.call @o3k_f32_gemm_block
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                     affine_map<(m, n, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<?x64xf32>, memref<64x32xf32>) outs(%c : memref<?x32xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    }
    // CHECK: scf.parallel
    // CHECK: func.call @o3k_f32_gemm_block
    linalg.generic {indexing_maps = [affine_map<(n, o, y, x, c, i, j) -> (n, c, y + i, x + j)>,
                                     affine_map<(n, o, y, x, c, i, j) -> (o, c, i, j)>,
                                     affine_map<(n, o, y, x, c, i, j) -> (n, o, y, x)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction",
                                      "reduction"]}
        ins(%x, %w : memref<1x8x10x10xf32>, memref<16x8x3x3xf32>) outs(%y : memref<1x16x8x8xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %m, %o : f32
      linalg.yield %r : f32
    }
    // Depthwise: one row for each channel.
    // CHECK-NOT: func.call
    // CHECK: linalg.generic
    linalg.generic {indexing_maps = [affine_map<(n, c, y, x, i, j) -> (n, c, y + i, x + j)>,
                                     affine_map<(n, c, y, x, i, j) -> (c, i, j)>,
                                     affine_map<(n, c, y, x, i, j) -> (n, c, y, x)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%dx, %dw : memref<1x8x10x10xf32>, memref<8x3x3xf32>) outs(%dy : memref<1x8x8x8xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    }
    return
  }
  // CHECK: func.func private @o3k_f32_gemm_tile_6x16_k256_n128(
  // CHECK: vector.fma {{.*}} : vector<8xf32>
  // CHECK: func.func private @o3k_f32_gemm_tile_strided_6x16_k256_n128(
  // CHECK: func.func private @o3k_f32_gemm_block_6x16_k256_n128(
}
