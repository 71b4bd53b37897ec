// Axes come as an attribute, as a constant, or with the run; before opset 13 Softmax flattens.
// RUN: o3-opt --normalize %s | FileCheck %s
module attributes {o3.stage = "import", o3.model = "reduce", o3.opset = {ai.onnx = 18 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", "", ""], o3.name = "x", o3.type = tensor<?x3x4xf32>},
      %axes: !o3.value {o3.dims = [""], o3.name = "axes", o3.type = tensor<1xi64>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf32>},
          !o3.value {o3.dims = [""], o3.name = "b", o3.type = tensor<?xf32>},
          !o3.value {o3.dims = ["", "", ""], o3.name = "c", o3.type = tensor<?x?x?xf32>},
          !o3.value {o3.dims = ["", "", ""], o3.name = "d", o3.type = tensor<?x?x?xf32>}) {
    // CHECK: "o3.reduce"(%arg0) {axes = array<i64: 1>, keepdims = false, kind = "mean"{{.*}}} : (tensor<?x3x4xf32>) -> tensor<?x4xf32>
    %a = "o3.node"(%x) {attrs = {axes = array<i64: -2>, keepdims = 0 : i64}, domain = "", name = "a", op = "ReduceMean", opset = 17 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value
    %last = "o3.initializer"() {name = "last", value = dense<[1, 2]> : tensor<2xi64>} : () -> !o3.value
    // CHECK: %[[SQUARES:.*]] = "o3.reduce"(%arg0) {axes = array<i64: 1, 2>, keepdims = false, kind = "sum_square"{{.*}}} : (tensor<?x3x4xf32>) -> tensor<?xf32>
    // CHECK: "o3.sqrt"(%[[SQUARES]])
    %b = "o3.node"(%x, %last) {attrs = {keepdims = 0 : i64}, domain = "", name = "b", op = "ReduceL2", opset = 18 : i64, outputs = ["b"]} : (!o3.value, !o3.value) -> !o3.value
    // CHECK: %[[FLAGS:.*]] = "o3.reduce"(%{{.*}}) {axes = array<i64: 0>, keepdims = false, kind = "max"{{.*}}} : (tensor<1x3xi64>) -> tensor<3xi64>
    // CHECK: "o3.bind"(%{{.*}}) {symbols = array<i64: {{[0-9]+, [0-9]+, [0-9]+}}>}
    // CHECK: "o3.dynamic_reduce"(%arg0, %[[FLAGS]]) {kind = "max"{{.*}}} : (tensor<?x3x4xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
    %c = "o3.node"(%x, %axes) {attrs = {}, domain = "", name = "c", op = "ReduceMax", opset = 18 : i64, outputs = ["c"]} : (!o3.value, !o3.value) -> !o3.value
    // CHECK: %[[FLAT:.*]] = "o3.reshape"(%arg0) {{.*}} -> tensor<?x12xf32>
    // CHECK: %[[SOFT:.*]] = "o3.softmax"(%[[FLAT]]) {axis = 1 : i64
    // CHECK: "o3.reshape"(%[[SOFT]]) {{.*}} -> tensor<?x3x4xf32>
    %d = "o3.node"(%x) {attrs = {}, domain = "", name = "d", op = "Softmax", opset = 11 : i64, outputs = ["d"]} : (!o3.value) -> !o3.value
    return %a, %b, %c, %d : !o3.value, !o3.value, !o3.value, !o3.value
  }
}
