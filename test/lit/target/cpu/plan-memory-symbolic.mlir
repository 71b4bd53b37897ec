// RUN: o3-opt --cpu-plan-memory %s | FileCheck %s
// Sizes that are multiples of the same product are packed in its units; what depends on data comes from the heap.

module {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: o3.arena_bytes = 512 : i64, o3.live_bytes = 512 : i64
  func.func @main(%x: memref<?x64xf32>, %n: memref<index>) -> memref<?x64xf32> {
    // CHECK: %[[D:.*]] = memref.dim
    // CHECK: arith.muli %{{.*}}, %[[D]]
    // CHECK: llvm.call @o3rt_arena
    %c0 = arith.constant 0 : index
    %d = memref.dim %x, %c0 : memref<?x64xf32>
    // CHECK: memref.view {{.*}}[%[[D]]] {o3.plan = {bytes = 256 : i64
    %a = memref.alloc(%d) : memref<?x64xf32>
    linalg.copy ins(%x : memref<?x64xf32>) outs(%a : memref<?x64xf32>)
    %b = memref.alloc(%d) : memref<?x64xf32>
    linalg.copy ins(%a : memref<?x64xf32>) outs(%b : memref<?x64xf32>)
    %e = memref.load %n[] : memref<index>
    // CHECK: llvm.call @o3rt_alloc
    // CHECK: memref.view {{.*}} {o3.plan = "heap"}
    %h = memref.alloc(%e) : memref<?xf32>
    %v = memref.load %b[%c0, %c0] : memref<?x64xf32>
    memref.store %v, %h[%c0] : memref<?xf32>
    %w = memref.load %h[%c0] : memref<?xf32>
    memref.store %w, %b[%c0, %c0] : memref<?x64xf32>
    return %b : memref<?x64xf32>
  }
}
