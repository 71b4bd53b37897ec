// RUN: o3-opt --cpu-entry %s | FileCheck %s
// RUN: o3-opt --cpu-entry --cpu-to-llvm %s | FileCheck --check-prefix=LLVM %s
module {
  func.func @main(%s: !llvm.ptr, %x: memref<?x4xf32>) -> (memref<?x4xf32>) {
    return %x : memref<?x4xf32>
  }
  func.func private @check(%n: index) -> i32 {
    %ok = arith.constant -1 : i32
    return %ok : i32
  }
  // CHECK: func.func @main(%{{.*}}: !llvm.ptr, %[[X:.*]]: memref<?x4xf32>, %[[TO:.*]]: !llvm.ptr) {
  // CHECK: %[[AT:.*]] = llvm.getelementptr %[[TO]][0]
  // CHECK: %[[PLACE:.*]] = llvm.load %[[AT]]
  // CHECK: llvm.store %{{.*}}, %[[PLACE]]
  // CHECK-NEXT: return{{$}}
  // CHECK: func.func @o3m_run(%[[S:.*]]: !llvm.ptr, %[[IN:.*]]: !llvm.ptr, %[[OUT:.*]]: !llvm.ptr)
  // CHECK: llvm.getelementptr %[[IN]][0]
  // CHECK: call @main(%[[S]], %{{.*}}, %[[OUT]])
  // CHECK: func.func @o3m_check(%{{.*}}: !llvm.ptr) -> i32
  // CHECK: call @check
  // LLVM: llvm.func @o3m_run(
  // LLVM-NOT: unrealized_conversion_cast
}
