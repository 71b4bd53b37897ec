// RUN: o3-opt --cpu-deallocate %s | FileCheck %s
// A buffer made in a loop is given back at the end of the iteration, unless it is carried on.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: memref<?xf32>, %n: memref<index>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = memref.load %n[] : memref<index>
    // CHECK: scf.for
    scf.for %i = %c0 to %end step %c1 {
      // CHECK: %[[A:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
      %a = memref.alloc(%i) : memref<?xf32>
      %v = memref.load %x[%i] : memref<?xf32>
      memref.store %v, %a[%c0] : memref<?xf32>
      // CHECK: memref.dealloc %[[A]]
      // CHECK-NEXT: }
    }
    return
  }
}
