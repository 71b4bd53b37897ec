// A branch that is not taken requires nothing: what only one branch needs is guarded inside of it. Sizes that
// differ between the branches are a data symbol.
// RUN: o3-opt --normalize %s | FileCheck %s

// CHECK-DAG: #[[N:.*]] = affine_map<()[s0, s1] -> (s0)>
// CHECK-DAG: #[[M:.*]] = affine_map<()[s0, s1] -> (s1)>
// CHECK-DAG: #[[NEW:.*]] = affine_map<()[s0, s1, s2] -> (s2)>
// CHECK: func.func @main
// CHECK-SAME: o3.guards = []
// CHECK-SAME: {kind = "data", name = "$2"}
// CHECK: %[[C:.*]] = tensor.extract %arg0[]
// CHECK: %[[Y:.*]] = scf.if %[[C]] -> (tensor<?xf32>) {
// CHECK-NEXT: "o3.guard"() {lhs = #[[N]], nonnegative = false, rhs = #[[M]], text = "node 'sum' (Add): n must equal m"}
// CHECK-NEXT: "o3.add"
// CHECK: else
// CHECK-NEXT: tensor.concat dim(0)
// CHECK: o3.shape = [#[[NEW]]]
// CHECK: "o3.neg"(%[[Y]]) {o3.shape = [#[[NEW]]]}
module attributes {o3.stage = "import"} {
  func.func @main(%c: !o3.value {o3.dims = [], o3.name = "c", o3.type = tensor<i1>},
                  %x: !o3.value {o3.dims = ["n"], o3.name = "x", o3.type = tensor<?xf32>},
                  %w: !o3.value {o3.dims = ["m"], o3.name = "w", o3.type = tensor<?xf32>}) -> (!o3.value {o3.name = "y"}) {
    %y = "o3.node"(%c, %x, %w) {attrs = {else_branch = @no, then_branch = @yes}, captures = 2 : i64, domain = "", name = "if", op = "If", opset = 14 : i64, outputs = ["y"]} : (!o3.value, !o3.value, !o3.value) -> !o3.value
    %z = "o3.node"(%y) {attrs = {}, domain = "", name = "neg", op = "Neg", opset = 14 : i64, outputs = ["z"]} : (!o3.value) -> !o3.value
    return %z : !o3.value
  }
  func.func private @yes(%x: !o3.value, %w: !o3.value) -> !o3.value {
    %0 = "o3.node"(%x, %w) {attrs = {}, domain = "", name = "sum", op = "Add", opset = 14 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value loc("sum")
    return %0 : !o3.value
  }
  func.func private @no(%x: !o3.value, %w: !o3.value) -> !o3.value {
    %0 = "o3.node"(%x, %w) {attrs = {axis = 0 : i64}, domain = "", name = "join", op = "Concat", opset = 14 : i64, outputs = ["b"]} : (!o3.value, !o3.value) -> !o3.value
    return %0 : !o3.value
  }
}
