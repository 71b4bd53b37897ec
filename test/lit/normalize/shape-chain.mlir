// Arithmetic on shapes turns into sizes: Shape, Gather, Unsqueeze, Concat and Reshape as exporters write them, through
// floats where a size is scaled. No symbol is made for what follows from N, H and W.
// RUN: o3-opt --normalize %s | FileCheck %s

// CHECK-DAG: #[[ROWS:.*]] = affine_map<()[s0, s1, s2] -> (s0, (s1 * s2) * 3)>
// CHECK-DAG: #[[TWICE:.*]] = affine_map<()[s0, s1, s2] -> (s1 * 2, s2 * 2)>
// CHECK: o3.symbols = [{kind = "input", name = "N"}, {kind = "input", name = "H"}, {kind = "input", name = "W"}]
// CHECK: "o3.reshape"(%arg0) {o3.shape = [#[[ROWS]]]}
// CHECK: "o3.size"() {map = #[[TWICE]]} : () -> tensor<2xi64>
module attributes {o3.stage = "import"} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "H", "W"], o3.name = "x", o3.type = tensor<?x3x?x?xf32>})
      -> (!o3.value {o3.name = "rows"}, !o3.value {o3.name = "twice"}) {
    %zero = "o3.initializer"() {name = "zero", value = dense<0> : tensor<i64>} : () -> !o3.value
    %open = "o3.initializer"() {name = "open", value = dense<-1> : tensor<1xi64>} : () -> !o3.value
    %axes = "o3.initializer"() {name = "axes", value = dense<0> : tensor<1xi64>} : () -> !o3.value
    %two = "o3.initializer"() {name = "two", value = dense<2> : tensor<1xi64>} : () -> !o3.value
    %four = "o3.initializer"() {name = "four", value = dense<4> : tensor<1xi64>} : () -> !o3.value
    %scale = "o3.initializer"() {name = "scale", value = dense<2.0> : tensor<f32>} : () -> !o3.value
    %s = "o3.node"(%x) {attrs = {}, domain = "", name = "shape", op = "Shape", opset = 18 : i64, outputs = ["s"]} : (!o3.value) -> !o3.value
    %n = "o3.node"(%s, %zero) {attrs = {axis = 0 : i64}, domain = "", name = "n", op = "Gather", opset = 18 : i64, outputs = ["n"]} : (!o3.value, !o3.value) -> !o3.value
    %n1 = "o3.node"(%n, %axes) {attrs = {}, domain = "", name = "n1", op = "Unsqueeze", opset = 18 : i64, outputs = ["n1"]} : (!o3.value, !o3.value) -> !o3.value
    %to = "o3.node"(%n1, %open) {attrs = {axis = 0 : i64}, domain = "", name = "to", op = "Concat", opset = 18 : i64, outputs = ["to"]} : (!o3.value, !o3.value) -> !o3.value
    %rows = "o3.node"(%x, %to) {attrs = {}, domain = "", name = "rows", op = "Reshape", opset = 18 : i64, outputs = ["rows"]} : (!o3.value, !o3.value) -> !o3.value
    %hw = "o3.node"(%s, %two, %four) {attrs = {}, domain = "", name = "hw", op = "Slice", opset = 18 : i64, outputs = ["hw"]} : (!o3.value, !o3.value, !o3.value) -> !o3.value
    %f = "o3.node"(%hw) {attrs = {to = 1 : i64}, domain = "", name = "f", op = "Cast", opset = 18 : i64, outputs = ["f"]} : (!o3.value) -> !o3.value
    %scaled = "o3.node"(%f, %scale) {attrs = {}, domain = "", name = "scaled", op = "Mul", opset = 18 : i64, outputs = ["scaled"]} : (!o3.value, !o3.value) -> !o3.value
    %floor = "o3.node"(%scaled) {attrs = {}, domain = "", name = "floor", op = "Floor", opset = 18 : i64, outputs = ["floor"]} : (!o3.value) -> !o3.value
    %twice = "o3.node"(%floor) {attrs = {to = 7 : i64}, domain = "", name = "twice", op = "Cast", opset = 18 : i64, outputs = ["twice"]} : (!o3.value) -> !o3.value
    return %rows, %twice : !o3.value, !o3.value
  }
}
