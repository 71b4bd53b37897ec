// RUN: o3-opt --target x86-64-v3 --cpu-contract %s | FileCheck %s
// A matrix with up to five vectors is read as it lies, without packing: along the results or along the sum.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%s: !llvm.ptr, %a: memref<3x64xf32>, %b: memref<64x500xf32>, %c: memref<3x500xf32>,
                  %d: memref<70x64xf32>, %e: memref<64x2xf32>, %f: memref<70x2xf32>) {
    // CHECK: scf.parallel
    // CHECK: func.call @o3k_f32_thin_sums_3x2x8_n256
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                     affine_map<(m, n, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<3x64xf32>, memref<64x500xf32>) outs(%c : memref<3x500xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    }
    // The vectors are the columns of the right operand.
    // CHECK: scf.parallel
    // CHECK: func.call @o3k_f32_thin_dots_2x4x8
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                     affine_map<(m, n, k) -> (m, n)>],
                    iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%d, %e : memref<70x64xf32>, memref<64x2xf32>) outs(%f : memref<70x2xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    }
    return
  }
  // CHECK: func.func private @o3k_f32_thin_sums_3x2x8_n256(
  // CHECK: vector.fma {{.*}} : vector<8xf32>
  // CHECK: func.func private @o3k_f32_thin_dots_2x4x8(
  // CHECK: vector.reduction <add>
}
