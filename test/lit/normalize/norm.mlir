// Normalisations share o3.layer_norm, whose scale and bias broadcast.
// RUN: o3-opt --normalize %s | FileCheck %s
module attributes {o3.stage = "import", o3.model = "norm", o3.opset = {ai.onnx = 23 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", "", "L"], o3.name = "x", o3.type = tensor<?x6x?xf16>})
      -> (!o3.value {o3.dims = ["", "", ""], o3.name = "d", o3.type = tensor<?x?x?xf16>}) {
    %six = "o3.initializer"() {name = "six", value = dense<1.0> : tensor<6xf16>} : () -> !o3.value
    %three = "o3.initializer"() {name = "three", value = dense<1.0> : tensor<3xf16>} : () -> !o3.value
    // CHECK: %[[GROUPS:.*]] = "o3.reshape"(%arg0) {{.*}} -> tensor<?x3x2x?xf16>
    // CHECK: "o3.layer_norm"(%[[GROUPS]], %{{.*}}, %{{.*}}) {axis = 2 : i64{{.*}} (tensor<?x3x2x?xf16>, tensor<3x2x1xf16>, tensor<3x2x1xf16>)
    %a = "o3.node"(%x, %six, %six) {attrs = {num_groups = 3 : i64}, domain = "", name = "a", op = "GroupNormalization", opset = 21 : i64, outputs = ["a"]} : (!o3.value, !o3.value, !o3.value) -> !o3.value
    // CHECK: "o3.layer_norm"({{.*}}) {axis = 2 : i64{{.*}} (tensor<?x3x2x?xf16>, tensor<3x1x1xf16>, tensor<3x1x1xf16>)
    %b = "o3.node"(%a, %three, %three) {attrs = {num_groups = 3 : i64}, domain = "", name = "b", op = "GroupNormalization", opset = 18 : i64, outputs = ["b"]} : (!o3.value, !o3.value, !o3.value) -> !o3.value
    // Known statistics fold to one factor and one term a channel, in f32.
    // CHECK: "o3.mul"(%{{.*}}, %{{.*}}) {{.*}} (tensor<?x6x?xf32>, tensor<6x1xf32>)
    // CHECK: "o3.add"(%{{.*}}, %{{.*}}) {{.*}} (tensor<?x6x?xf32>, tensor<6x1xf32>)
    // CHECK: "o3.cast"({{.*}}to = f16} : (tensor<?x6x?xf32>) -> tensor<?x6x?xf16>
    %c = "o3.node"(%b, %six, %six, %six, %six) {attrs = {}, domain = "", name = "c", op = "BatchNormalization", opset = 15 : i64, outputs = ["c"]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    %last = "o3.initializer"() {name = "last", value = dense<1.0> : tensor<1xf16>} : () -> !o3.value
    // CHECK: "o3.layer_norm"(%{{.*}}, %{{.*}}) {axis = 2 : i64{{.*}}rms = true}
    %d = "o3.node"(%c, %last) {attrs = {}, domain = "", name = "d", op = "RMSNormalization", opset = 23 : i64, outputs = ["d"]} : (!o3.value, !o3.value) -> !o3.value
    return %d : !o3.value
  }
}
