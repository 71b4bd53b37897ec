// RUN: o3-opt --cpu-loop-carried --cpu-bufferize --cpu-deallocate %s | FileCheck %s
// RUN: o3-opt --cpu-loop-carried --cpu-bufferize --cpu-deallocate --cpu-plan-memory %s | FileCheck --check-prefix=HEAP %s
// A tensor that grows in a loop: each iteration frees what the one before made.

module {
  // CHECK-LABEL: func.func @main
  // HEAP-LABEL: func.func @main
  func.func @main(%x: tensor<?xf32>, %n: tensor<index>) -> tensor<?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = tensor.extract %n[] : tensor<index>
    %one = arith.constant 1.0 : f32
    // CHECK: scf.for
    // CHECK: memref.alloc
    // CHECK: memref.dealloc
    // CHECK: scf.yield
    // HEAP: scf.for
    // HEAP: llvm.call @o3rt_alloc
    // HEAP: llvm.call @o3rt_free
    // HEAP: scf.yield
    %r = scf.for %i = %c0 to %end step %c1 iter_args(%t = %x) -> tensor<?xf32> {
      %d = tensor.dim %t, %c0 : tensor<?xf32>
      %d1 = arith.addi %d, %c1 : index
      %e = tensor.empty(%d1) : tensor<?xf32>
      %f = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      %g = tensor.insert_slice %t into %f[0] [%d] [1] : tensor<?xf32> into tensor<?xf32>
      scf.yield %g : tensor<?xf32>
    }
    return %r : tensor<?xf32>
  }
}
