// RUN: o3-opt --cpu-plan-memory %s | FileCheck %s
// Buffers of the same sizes in another order share a plan; its code multiplies sizes in the first buffer's order, so that
// equal models give equal code, wherever the compiler's own memory lies.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x?x?x?x64xf32>
// CHECK-DAG: %[[A:.*]] = memref.dim %[[X]], %c0
// CHECK-DAG: %[[B:.*]] = memref.dim %[[X]], %c1
// CHECK-DAG: %[[C:.*]] = memref.dim %[[X]], %c2
// CHECK-DAG: %[[D:.*]] = memref.dim %[[X]], %c3
// CHECK: %[[P:.*]] = arith.muli %{{.*}}, %[[D]]
// CHECK: %[[Q:.*]] = arith.muli %[[P]], %[[B]]
// CHECK: %[[R:.*]] = arith.muli %[[Q]], %[[C]]
// CHECK: arith.muli %[[R]], %[[A]]
// CHECK: llvm.call @o3rt_arena
// CHECK: memref.view {{.*}}[%[[D]], %[[B]], %[[C]], %[[A]]] {o3.plan = {bytes = 256 : i64, first = {{.*}}, group = 0 : i64
// CHECK: memref.view {{.*}}[%[[A]], %[[C]], %[[B]], %[[D]]] {o3.plan = {bytes = 256 : i64, first = {{.*}}, group = 0 : i64
func.func @main(%x: memref<?x?x?x?x64xf32>, %y: memref<?x?x?x?x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a = memref.dim %x, %c0 : memref<?x?x?x?x64xf32>
  %b = memref.dim %x, %c1 : memref<?x?x?x?x64xf32>
  %c = memref.dim %x, %c2 : memref<?x?x?x?x64xf32>
  %d = memref.dim %x, %c3 : memref<?x?x?x?x64xf32>
  %u = memref.alloc(%d, %b, %c, %a) : memref<?x?x?x?x64xf32>
  linalg.transpose ins(%x : memref<?x?x?x?x64xf32>) outs(%u : memref<?x?x?x?x64xf32>) permutation = [3, 1, 2, 0, 4]
  %v = memref.alloc(%a, %c, %b, %d) : memref<?x?x?x?x64xf32>
  linalg.transpose ins(%u : memref<?x?x?x?x64xf32>) outs(%v : memref<?x?x?x?x64xf32>) permutation = [3, 2, 1, 0, 4]
  linalg.copy ins(%v : memref<?x?x?x?x64xf32>) outs(%y : memref<?x?x?x?x64xf32>)
  return
}
