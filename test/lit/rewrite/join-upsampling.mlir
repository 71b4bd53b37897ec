// RUN: o3-opt --join-upsampling --simplify %s | FileCheck %s
// Two transposed convolutions whose windows do not overlap are 1x1 convolutions, and what follows comes before the pixels
// are spread. With more outputs than a block has places for, they stay.

module {
  // CHECK-LABEL: func.func @main
  // CHECK: %[[V:.*]] = "o3.reshape"({{.*}}) : (tensor<2x2x20x16xf32>) -> tensor<80x16x1x1xf32>
  // CHECK: %[[T:.*]] = "o3.conv"(%{{.*}}, %[[V]]) {{.*}} -> tensor<1x80x5x6xf32>
  // CHECK: %[[R:.*]] = "o3.max"(%[[T]],
  // CHECK: tensor.concat {{.*}} -> tensor<80x1x4x4xf32>
  // CHECK: %[[S:.*]] = "o3.conv"(%[[R]], {{.*}} -> tensor<1x16x5x6xf32>
  // CHECK: "o3.sigmoid"(%[[S]])
  // CHECK: "o3.transpose"({{.*}}) {perm = array<i64: 0, 1, 4, 2, 5, 3>} : (tensor<1x1x4x4x5x6xf32>) -> tensor<1x1x5x4x6x4xf32>
  // CHECK: "o3.conv_transpose"({{.*}}tensor<20x2x2x2xf32>) -> tensor<1x2x20x24xf32>
  func.func @main(%x: tensor<1x16x5x6xf32>) -> (tensor<1x1x20x24xf32>, tensor<1x2x20x24xf32>)
      attributes {o3.symbols = [], o3.guards = []} {
    %zero = "o3.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %v = "o3.constant"() {value = dense<1.0> : tensor<16x20x2x2xf32>} : () -> tensor<16x20x2x2xf32>
    %w1 = "o3.constant"() {value = dense<1.0> : tensor<20x1x2x2xf32>} : () -> tensor<20x1x2x2xf32>
    %w2 = "o3.constant"() {value = dense<1.0> : tensor<20x2x2x2xf32>} : () -> tensor<20x2x2x2xf32>
    %a = "o3.conv_transpose"(%x, %v) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64}
        : (tensor<1x16x5x6xf32>, tensor<16x20x2x2xf32>) -> tensor<1x20x10x12xf32>
    %r = "o3.max"(%a, %zero) : (tensor<1x20x10x12xf32>, tensor<f32>) -> tensor<1x20x10x12xf32>
    %b = "o3.conv_transpose"(%r, %w1) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64}
        : (tensor<1x20x10x12xf32>, tensor<20x1x2x2xf32>) -> tensor<1x1x20x24xf32>
    %y = "o3.sigmoid"(%b) : (tensor<1x1x20x24xf32>) -> tensor<1x1x20x24xf32>
    %c = "o3.conv_transpose"(%x, %v) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64}
        : (tensor<1x16x5x6xf32>, tensor<16x20x2x2xf32>) -> tensor<1x20x10x12xf32>
    %d = "o3.neg"(%c) : (tensor<1x20x10x12xf32>) -> tensor<1x20x10x12xf32>
    %z = "o3.conv_transpose"(%d, %w2) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64}
        : (tensor<1x20x10x12xf32>, tensor<20x2x2x2xf32>) -> tensor<1x2x20x24xf32>
    return %y, %z : tensor<1x1x20x24xf32>, tensor<1x2x20x24xf32>
  }
}
