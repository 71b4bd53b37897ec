// Before opset 7 the second input is broadcast by the attributes broadcast and axis.
// RUN: o3-opt --normalize %s | FileCheck %s
module attributes {o3.stage = "import", o3.model = "legacy", o3.opset = {ai.onnx = 6 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<2x3x4x5xf32>}, %b: !o3.value {o3.name = "b", o3.type = tensor<3x4xf32>}, %c: !o3.value {o3.name = "c", o3.type = tensor<5xf32>}, %d: !o3.value {o3.name = "d", o3.type = tensor<1x1xf32>}, %s: !o3.value {o3.name = "s", o3.type = tensor<3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<2x3x4x5xf32>}) {
    // axis 1: b lies along the dimensions 1 and 2 of x.
    // CHECK: %[[B:.*]] = "o3.reshape"(%arg1){{.*}} : (tensor<3x4xf32>) -> tensor<3x4x1xf32>
    // CHECK: %[[P:.*]] = "o3.add"(%arg0, %[[B]])
    %p = "o3.node"(%x, %b) {attrs = {axis = 1 : i64, broadcast = 1 : i64}, domain = "", name = "p", op = "Add", opset = 6 : i64, outputs = ["p"]} : (!o3.value, !o3.value) -> !o3.value loc("p")
    // Without axis it lies along the last.
    // CHECK: %[[Q:.*]] = "o3.mul"(%[[P]], %arg2){{.*}} : (tensor<2x3x4x5xf32>, tensor<5xf32>)
    %q = "o3.node"(%p, %c) {attrs = {broadcast = 1 : i64}, domain = "", name = "q", op = "Mul", opset = 6 : i64, outputs = ["q"]} : (!o3.value, !o3.value) -> !o3.value loc("q")
    // One number goes everywhere, wherever axis says.
    // CHECK: %[[R:.*]] = "o3.sub"(%[[Q]], %arg3){{.*}} : (tensor<2x3x4x5xf32>, tensor<1x1xf32>)
    %r = "o3.node"(%q, %d) {attrs = {axis = 0 : i64, broadcast = 1 : i64, consumed_inputs = array<i64: 0, 0>}, domain = "", name = "r", op = "Sub", opset = 1 : i64, outputs = ["r"]} : (!o3.value, !o3.value) -> !o3.value loc("r")
    // One slope for each channel.
    // CHECK: %[[S:.*]] = "o3.reshape"(%arg4){{.*}} : (tensor<3xf32>) -> tensor<3x1x1xf32>
    // CHECK: "o3.mul"(%[[R]], %[[S]])
    %y = "o3.node"(%r, %s) {attrs = {}, domain = "", name = "y", op = "PRelu", opset = 6 : i64, outputs = ["y"]} : (!o3.value, !o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
