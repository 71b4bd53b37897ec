// Activations become arithmetic; bounds of Clip are attributes before opset 11, and none by default before 6.
// RUN: o3-opt --normalize %s | FileCheck %s
module attributes {o3.stage = "import", o3.model = "elementwise", o3.opset = {ai.onnx = 20 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf32>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "e", o3.type = tensor<?x?xui8>}) {
    // CHECK: %[[LOW:.*]] = "o3.max"(%arg0, %{{.*}})
    // CHECK-NOT: o3.min
    %a = "o3.node"(%x) {attrs = {min = -1.0 : f32}, domain = "", name = "a", op = "Clip", opset = 5 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value
    // CHECK: %[[BELOW:.*]] = "o3.less"(%[[LOW]], %{{.*}}) {{.*}} -> tensor<?x8xi1>
    // CHECK: "o3.select"(%[[BELOW]], %{{.*}}, %[[LOW]])
    %b = "o3.node"(%a) {attrs = {alpha = 0.25 : f32}, domain = "", name = "b", op = "LeakyRelu", opset = 20 : i64, outputs = ["b"]} : (!o3.value) -> !o3.value
    // CHECK: "o3.erf"
    %c = "o3.node"(%b) {attrs = {}, domain = "", name = "c", op = "Gelu", opset = 20 : i64, outputs = ["c"]} : (!o3.value) -> !o3.value
    // CHECK: "o3.is_inf"(%{{.*}}) {negative = false{{.*}}positive = true}
    %d = "o3.node"(%c) {attrs = {detect_negative = 0 : i64}, domain = "", name = "d", op = "IsInf", opset = 20 : i64, outputs = ["d"]} : (!o3.value) -> !o3.value
    // CHECK: "o3.cast"(%{{.*}}) {{{.*}}to = ui8} : (tensor<?x8xi1>) -> tensor<?x8xui8>
    %e = "o3.node"(%d) {attrs = {to = 2 : i64}, domain = "", name = "e", op = "Cast", opset = 20 : i64, outputs = ["e"]} : (!o3.value) -> !o3.value
    return %e : !o3.value
  }
}
