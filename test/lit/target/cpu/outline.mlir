// RUN: o3-opt --cpu-outline %s | FileCheck %s
// RUN: o3-opt --cpu-outline --cpu-share-kernels %s | FileCheck --check-prefix=SHARED %s
// The dims are flattened; what the body uses travels in a context; two equal loops share a function; a loop that
// may fail stays with the thread of the run.

// SHARED-COUNT-1: func.func private @o3k_
// SHARED-NOT: func.func private @o3k_
module {
  // CHECK: llvm.func hidden @o3rt_parallel_for
  llvm.func hidden @o3rt_fail(!llvm.ptr, !llvm.ptr)
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: (%[[SESSION:.*]]: !llvm.ptr
  func.func @main(%s: !llvm.ptr, %a: memref<?x8xf32>, %b: memref<?x8xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    // CHECK-DAG: constant @o3k_relu_0
    // CHECK-DAG: constant @o3k_relu_1
    // CHECK: %[[CONTEXT:.*]] = llvm.alloca
    // CHECK: llvm.call @o3rt_parallel_for(%[[SESSION]], %{{.*}}, %[[CONTEXT]], %{{.*}}, %{{.*}})
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c8) step (%c1, %c1) {
      %v = memref.load %a[%i, %j] : memref<?x8xf32>
      memref.store %v, %b[%i, %j] : memref<?x8xf32>
      scf.reduce
    } {o3.work = 100 : i64} loc("relu")
    // CHECK: llvm.call @o3rt_parallel_for
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c8) step (%c1, %c1) {
      %v = memref.load %b[%i, %j] : memref<?x8xf32>
      memref.store %v, %a[%i, %j] : memref<?x8xf32>
      scf.reduce
    } {o3.work = 100 : i64} loc("relu")
    // CHECK: scf.for
    // CHECK: llvm.call @o3rt_fail
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      llvm.call @o3rt_fail(%s, %s) : (!llvm.ptr, !llvm.ptr) -> ()
      scf.reduce
    }
    return
  }
  // CHECK: func.func private @o3k_relu_0(%[[C:.*]]: !llvm.ptr, %[[LO:.*]]: i64, %[[HI:.*]]: i64)
  // CHECK: llvm.load %[[C]]
  // CHECK: scf.for
  // CHECK: arith.remui
  // CHECK: memref.store
}
