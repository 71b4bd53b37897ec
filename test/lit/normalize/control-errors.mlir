// What branches and loops refuse, and how they say it.
// RUN: split-file %s %t
// RUN: not o3-opt --normalize %t/rank.mlir 2>&1 | FileCheck --check-prefix=RANK %s
// RUN: not o3-opt --normalize %t/sequence.mlir 2>&1 | FileCheck --check-prefix=SEQUENCE %s

// RANK: error: unsupported: node 'if' (If): output 0 has rank 1 in one branch and 0 in the other, which only a condition that is known while compiling can have (set what it follows from with --dim, --shape or --value)
//--- rank.mlir
module attributes {o3.stage = "import"} {
  func.func @main(%c: !o3.value {o3.dims = [], o3.name = "c", o3.type = tensor<i1>},
                  %x: !o3.value {o3.dims = [""], o3.name = "x", o3.type = tensor<3xf32>}) -> (!o3.value {o3.name = "y"}) {
    %y = "o3.node"(%c, %x) {attrs = {else_branch = @no, then_branch = @yes}, captures = 1 : i64, domain = "", name = "if", op = "If", opset = 14 : i64, outputs = ["y"]} : (!o3.value, !o3.value) -> !o3.value loc("if")
    return %y : !o3.value
  }
  func.func private @yes(%x: !o3.value) -> !o3.value {
    return %x : !o3.value
  }
  func.func private @no(%x: !o3.value) -> !o3.value {
    %0 = "o3.node"(%x) {attrs = {keepdims = 0 : i64}, domain = "", name = "sum", op = "ReduceSum", opset = 14 : i64, outputs = ["b"]} : (!o3.value) -> !o3.value
    return %0 : !o3.value
  }
}

// SEQUENCE: error: invalid model: node 'at' (SequenceAt): position 2 is out of range for a sequence of 2
//--- sequence.mlir
module attributes {o3.stage = "import"} {
  func.func @main(%x: !o3.value {o3.dims = [""], o3.name = "x", o3.type = tensor<3xf32>}) -> (!o3.value {o3.name = "y"}) {
    %at = "o3.initializer"() {name = "at", value = dense<2> : tensor<i64>} : () -> !o3.value
    %s = "o3.node"(%x, %x) {attrs = {}, domain = "", name = "pair", op = "SequenceConstruct", opset = 14 : i64, outputs = ["s"]} : (!o3.value, !o3.value) -> !o3.value
    %y = "o3.node"(%s, %at) {attrs = {}, domain = "", name = "at", op = "SequenceAt", opset = 14 : i64, outputs = ["y"]} : (!o3.value, !o3.value) -> !o3.value loc("at")
    return %y : !o3.value
  }
}
