// Every stage has a table of the ops that it may leave.
// RUN: o3-opt --verify-stage lower %s
// RUN: o3-opt --verify-stage normalize %s
// RUN: not o3-opt --verify-stage import %s 2>&1 | FileCheck --check-prefix=IMPORT %s
// RUN: not o3-opt --verify-stage llvm %s 2>&1 | FileCheck --check-prefix=LLVM %s

// IMPORT: o3-opt: error: internal error: op 'arith.addf' (of 'sum') is not legal after stage import, which leaves func,o3.node,o3.initializer
// LLVM: o3-opt: error: internal error: op 'arith.addf' (of 'sum') is not legal after stage llvm, which leaves llvm
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32> loc("sum")
  return %y : tensor<4xf32>
}
