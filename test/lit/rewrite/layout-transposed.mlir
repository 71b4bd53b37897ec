// RUN: o3-opt --layout --simplify %s | FileCheck %s
// A transposed convolution is one convolution for all phases of its stride.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<1x16x5x6xf32>) -> (tensor<1x20x10x12xf32>, tensor<1x2x9x11xf32>)
      attributes {o3.symbols = [], o3.guards = []} {
    %w1 = "o3.constant"() {value = dense<1.0> : tensor<16x20x2x2xf32>} : () -> tensor<16x20x2x2xf32>
    %w2 = "o3.constant"() {value = dense<1.0> : tensor<16x2x3x3xf32>} : () -> tensor<16x2x3x3xf32>
    // Two blocks of outputs, each of them four times; the results lie between one another.
    // CHECK: "o3.conv_blocked"({{.*}}pads = array<i64: 0, 0, 0, 0>, shuffle = array<i64: 2, 2>{{.*}}tensor<8x1x1x1x16x16xf32>) -> tensor<1x2x10x12x16xf32>
    %y = "o3.conv_transpose"(%x, %w1) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64}
        : (tensor<1x16x5x6xf32>, tensor<16x20x2x2xf32>) -> tensor<1x20x10x12xf32>
    // Two outputs in four phases are eight lanes; two taps each way cover a window of three.
    // CHECK: "o3.conv_blocked"({{.*}}pads = array<i64: 1, 1, 1, 1>, strides{{.*}}tensor<1x1x2x2x16x16xf32>) -> tensor<1x1x6x7x16xf32>
    // CHECK: "o3.transpose"({{.*}}tensor<1x6x7x2x2x2xf32>) -> tensor<1x2x6x2x7x2xf32>
    // CHECK: "o3.slice"({{.*}} -> tensor<1x2x9x14xf32>
    // CHECK: "o3.slice"({{.*}} -> tensor<1x2x9x11xf32>
    %z = "o3.conv_transpose"(%x, %w2) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, output_padding = array<i64: 0, 0>, group = 1 : i64}
        : (tensor<1x16x5x6xf32>, tensor<16x2x3x3xf32>) -> tensor<1x2x9x11xf32>
    return %y, %z : tensor<1x20x10x12xf32>, tensor<1x2x9x11xf32>
  }
}
