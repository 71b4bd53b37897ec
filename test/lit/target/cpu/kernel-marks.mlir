// RUN: o3-opt --cpu-kernel-marks %s | FileCheck %s
// Each op of @main is numbered; what it does is counted, with sizes that only the run knows; a loop without ops is
// one kernel, one with ops leaves them their own numbers; a call of a kernel gets its number for cpu-kernels.

#map = affine_map<(d0, d1) -> (d0, d1)>
#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: module attributes {o3.kernels = [
// CHECK-SAME: {kind = "elementwise", name = "relu", nodes = ["relu"]},
// CHECK-SAME: {kind = "contraction", name = "gemm", nodes = ["gemm"]},
// CHECK-SAME: {kind = "loop", name = "sort", nodes = ["sort"]},
// CHECK-SAME: {kind = "elementwise", name = "inner", nodes = ["inner"]},
// CHECK-SAME: {kind = "rows", name = "k0_rows_x", nodes = ["x", "y"]}]}
module {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: (%[[S:[^:]*]]: !llvm.ptr, %[[A:[^:]*]]: memref<?x8xf32>
  func.func @main(%s: !llvm.ptr, %a: memref<?x8xf32>, %b: memref<8x8xf32>, %c: memref<8x8xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // 1 operation and 8 bytes an element, rows known to the run.
    // CHECK: %[[ROWS:.*]] = memref.dim %[[A]]
    // CHECK: %[[EIGHT:.*]] = arith.constant 8
    // CHECK: %[[COUNT:.*]] = arith.muli %[[ROWS]], %[[EIGHT]]
    // CHECK: %[[OPS:.*]] = arith.index_cast %[[COUNT]]
    // CHECK: llvm.call @o3rt_kernel_begin(%[[S]], %{{.*}}, %[[OPS]], %{{.*}})
    // CHECK-NEXT: linalg.generic
    linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]}
        outs(%a : memref<?x8xf32>) {
    ^bb0(%x: f32):
      %z = arith.constant 0.0 : f32
      %m = arith.maximumf %x, %z : f32
      linalg.yield %m : f32
    } loc("relu")
    // 2 * 8^3 operations, 2 * 256 bytes: the operand that comes twice counts once.
    // CHECK: %[[ONE:.*]] = arith.constant 1 : i32
    // CHECK: %[[FLOPS:.*]] = arith.constant 1024 : i64
    // CHECK: %[[BYTES:.*]] = arith.constant 512 : i64
    // CHECK: llvm.call @o3rt_kernel_begin(%[[S]], %[[ONE]], %[[FLOPS]], %[[BYTES]])
    // CHECK-NEXT: linalg.generic
    linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%b, %b : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>) {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %acc, %p : f32
      linalg.yield %q : f32
    } loc("gemm")
    // CHECK: arith.constant 2 : i32
    // CHECK: llvm.call @o3rt_kernel_begin
    // CHECK-NEXT: scf.for
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %b[%c0, %c1] : memref<8x8xf32>
      memref.store %v, %c[%c0, %c1] : memref<8x8xf32>
    } loc("sort")
    // CHECK: scf.for
    // CHECK: arith.constant 3 : i32
    // CHECK: llvm.call @o3rt_kernel_begin
    // CHECK-NEXT: linalg.generic
    scf.for %i = %c0 to %n step %c1 {
      linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]}
          outs(%c : memref<8x8xf32>) {
      ^bb0(%x: f32):
        linalg.yield %x : f32
      } loc("inner")
    } loc("outer")
    // CHECK: call @k0_rows_x(%{{.*}}) {o3.kernel = 4 : i64}
    func.call @k0_rows_x(%c) : (memref<8x8xf32>) -> ()
    return
  }
  func.func private @k0_rows_x(%c: memref<8x8xf32>) attributes {o3.kernel_kind = "rows", o3.nodes = ["x", "y", "x"]} {
    return
  }
}
