// Windows: constant pads are attributes; pads that depend on symbols are a padding op of their own. A window that
// hangs over the end counts where it starts in the input. Resize keeps the axes that change; Einsum is a product.
// RUN: o3-opt --normalize %s | FileCheck %s

// CHECK-DAG: #[[STRIDED:.*]] = affine_map<()[s0, s1, s2] -> (s0, 8, (s1 - 1) floordiv 2 + 1, (s2 - 1) floordiv 2 + 1)>
// CHECK-DAG: #[[SAME:.*]] = affine_map<()[s0, s1, s2] -> (s0, 8, s1 ceildiv 2, s2 ceildiv 2)>
// CHECK-DAG: #[[CEIL:.*]] = affine_map<()[s0, s1, s2] -> (s0, 4, (s1 - 2) ceildiv 2 + 1, (s2 - 2) ceildiv 2 + 1)>
// CHECK-DAG: #[[RESIZED:.*]] = affine_map<()[s0, s1, s2] -> (s0, 4, s1 * 2, (s2 * 3) floordiv 2)>
// CHECK: "o3.conv"(%arg0, %{{.*}}) {{.*}}o3.shape = [#[[STRIDED]]], pads = array<i64: 1, 1, 1, 1>
// CHECK: %[[PADDED:.*]] = "o3.pad"(%arg0, %{{.*}}) {{.*}}mode = "constant"
// CHECK: "o3.conv"(%[[PADDED]], %{{.*}}) {{.*}}o3.shape = [#[[SAME]]], pads = array<i64: 0, 0, 0, 0>
// CHECK: "o3.max_pool"(%arg0) {ceil_mode = true, {{.*}}o3.shape = [#[[CEIL]]]
// CHECK: %[[SCALES:.*]] = "o3.constant"() {value = dense<[2.000000e+00, 1.500000e+00]> : tensor<2xf32>}
// CHECK: "o3.resize"(%arg0, %[[SCALES]]) {{.*}}axes = array<i64: 2, 3>, {{.*}}o3.shape = [#[[RESIZED]]]
// CHECK: %[[ROWS:.*]] = "o3.transpose"(%arg0) {{.*}}perm = array<i64: 0, 3, 1, 2>
// CHECK: %[[LEFT:.*]] = "o3.reshape"(%[[ROWS]])
// CHECK: %[[RIGHT:.*]] = "o3.reshape"(%arg0)
// CHECK: "o3.matmul"(%[[LEFT]], %[[RIGHT]])
module attributes {o3.stage = "import", o3.model = "window", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", "", "H", "W"], o3.name = "x", o3.type = tensor<?x4x?x?xf32>})
      -> (!o3.value {o3.name = "a"}, !o3.value {o3.name = "b"}, !o3.value {o3.name = "c"}, !o3.value {o3.name = "d"}, !o3.value {o3.name = "e"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x, %w) {attrs = {pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>}, domain = "", name = "a", op = "Conv", opset = 21 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value
    %b = "o3.node"(%x, %w) {attrs = {auto_pad = "SAME_UPPER", strides = array<i64: 2, 2>}, domain = "", name = "b", op = "Conv", opset = 21 : i64, outputs = ["b"]} : (!o3.value, !o3.value) -> !o3.value
    %c = "o3.node"(%x) {attrs = {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, ceil_mode = 1 : i64}, domain = "", name = "c", op = "MaxPool", opset = 21 : i64, outputs = ["c"]} : (!o3.value) -> !o3.value
    %s = "o3.initializer"() {name = "s", value = dense<[1.0, 1.0, 2.0, 1.5]> : tensor<4xf32>} : () -> !o3.value
    %none = "o3.initializer"() {name = "none", value = dense<> : tensor<0xf32>} : () -> !o3.value
    %d = "o3.node"(%x, %none, %s) {attrs = {mode = "linear"}, domain = "", name = "d", op = "Resize", opset = 21 : i64, outputs = ["d"]} : (!o3.value, !o3.value, !o3.value) -> !o3.value
    %e = "o3.node"(%x, %x) {attrs = {equation = "nchw,nchv->nwv"}, domain = "", name = "e", op = "Einsum", opset = 21 : i64, outputs = ["e"]} : (!o3.value, !o3.value) -> !o3.value
    return %a, %b, %c, %d, %e : !o3.value, !o3.value, !o3.value, !o3.value, !o3.value
  }
}
