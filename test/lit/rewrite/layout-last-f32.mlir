// RUN: o3-opt --target ampere --layout --simplify %s | FileCheck %s
// Where f32 has kernels with the channels last, too, convolutions in f32 are the same, and weights that grow by their
// missing channels are still computed by the compiler.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<1x3x12x12xf32>) -> tensor<1x16x5x5xf32> attributes {o3.symbols = [], o3.guards = []} {
    %w = "o3.constant"() {value = dense<1.0> : tensor<16x3x3x3xf32>} : () -> tensor<16x3x3x3xf32>
    // CHECK: "o3.pack_last"(%arg0){{.*}} : (tensor<1x3x12x12xf32>) -> tensor<1x1x12x12x8xf32>
    // CHECK: "o3.pad"{{.*}}o3.fold{{.*}}-> tensor<16x8x3x3xf32>
    // CHECK: "o3.conv_last"{{.*}} -> tensor<1x1x5x5x16xf32>
    %y = "o3.conv"(%x, %w) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 1 : i64} : (tensor<1x3x12x12xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x5x5xf32>
    return %y : tensor<1x16x5x5xf32>
  }
}
