// RUN: o3-opt --cpu-asserts %s | FileCheck %s
module {
  // CHECK: llvm.mlir.global internal constant @[[TEXT:.*]]("node 'Gather_7': index out of range\00")
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: (%[[SESSION:.*]]: !llvm.ptr, %[[OK:.*]]: i1)
  func.func @main(%session: !llvm.ptr, %ok: i1) {
    // CHECK: %[[BAD:.*]] = arith.xori %[[OK]]
    // CHECK: scf.if %[[BAD]]
    // CHECK: %[[MESSAGE:.*]] = llvm.mlir.addressof @[[TEXT]]
    // CHECK: llvm.call @o3rt_fail(%[[SESSION]], %[[MESSAGE]])
    cf.assert %ok, "node 'Gather_7': index out of range"
    return
  }
}
