// A carried value that grows makes the loop an scf.while; its size is a symbol of the block arguments inside and
// another one after the loop.
// RUN: o3-opt --normalize %s | FileCheck %s

// CHECK: %[[INIT:.*]] = tensor.cast %arg0 : tensor<2xf32> to tensor<?xf32>
// CHECK: scf.while ({{.*}} = %[[INIT]]) : (index, tensor<i1>, tensor<?xf32>)
// CHECK: arith.cmpi slt
// CHECK: scf.condition
// CHECK: ^bb0(%[[I:.*]]: index, %{{.*}}: tensor<i1>, %[[V:.*]]: tensor<?xf32>):
// CHECK: %[[NEXT:.*]] = tensor.concat dim(0) %[[V]], %arg0
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[NEXT]]
module attributes {o3.stage = "import"} {
  func.func @main(%v: !o3.value {o3.dims = [], o3.name = "v", o3.type = tensor<2xf32>}) -> (!o3.value {o3.name = "last"}) {
    %m = "o3.initializer"() {name = "M", value = dense<4> : tensor<i64>} : () -> !o3.value
    %r = "o3.node"(%m, %v, %v) {attrs = {body = @body}, captures = 1 : i64, domain = "", name = "loop", op = "Loop", opset = 16 : i64, outputs = ["last"], present = [true, false, true]} : (!o3.value, !o3.value, !o3.value) -> !o3.value
    return %r : !o3.value
  }
  func.func private @body(%i: !o3.value, %c: !o3.value, %v: !o3.value, %x: !o3.value) -> (!o3.value, !o3.value) {
    %0 = "o3.node"(%v, %x) {attrs = {axis = 0 : i64}, domain = "", name = "join", op = "Concat", opset = 16 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value
    return %c, %0 : !o3.value, !o3.value
  }
}
