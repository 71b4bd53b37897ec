// RUN: o3c --model %s --target hopper -O2 --precision fp16 --emit plan -o - | FileCheck %s
// A weight of one number is made in the kernel, where no family of products takes it: the sums, wider than the result,
// must not lie in memory that the kernel itself allocates, which would be the host's.
//
// CHECK-LABEL: func.func @main
// CHECK-NOT: memref.alloc(
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<1x16x8x8xf32>, o3.dims = ["", "", "", ""]})
      -> (!o3.value {o3.name = "y"}) {
    %w = "o3.initializer"() {name = "w", value = dense<0.5> : tensor<16x16x1x1xf32>} : () -> !o3.value
    %t = "o3.node"(%x, %w) {op = "Conv", domain = "", opset = 17 : i64, name = "conv", outputs = ["t"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %y = "o3.node"(%t) {op = "Neg", domain = "", opset = 17 : i64, name = "neg", outputs = ["y"], attrs = {}} : (!o3.value) -> !o3.value
    return %y : !o3.value
  }
}
