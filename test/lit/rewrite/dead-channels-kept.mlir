// RUN: o3-opt --dead-channels --check-equal %s | FileCheck %s

// Output 1 is 3 everywhere, but the second convolution is padded: at the border it sees zeros in its place, so no bias
// stands for it, and the channel stays. Output 2 is 0, as the padding is, and goes.
// CHECK: "o3.conv"({{.*}}) {{.*}} -> tensor<1x2x5x5xf32>
// CHECK: "o3.conv"({{.*}}) {{.*}} : (tensor<1x2x5x5xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x5x5xf32>
func.func @main(%x: tensor<1x1x5x5xf32> {o3.name = "x"}) -> (tensor<1x1x5x5xf32> {o3.name = "u"}) {
  %w = "o3.constant"() {value = dense<[[[[1.0]]], [[[0.0]]], [[[0.0]]]]> : tensor<3x1x1x1xf32>} : () -> tensor<3x1x1x1xf32>
  %b = "o3.constant"() {value = dense<[0.5, 3.0, 0.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %v = "o3.constant"() {value = dense<1.0> : tensor<1x3x3x3xf32>} : () -> tensor<1x3x3x3xf32>
  %y = "o3.conv"(%x, %w, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 1 : i64} : (tensor<1x1x5x5xf32>, tensor<3x1x1x1xf32>, tensor<3xf32>) -> tensor<1x3x5x5xf32>
  %u = "o3.conv"(%y, %v) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, group = 1 : i64} : (tensor<1x3x5x5xf32>, tensor<1x3x3x3xf32>) -> tensor<1x1x5x5xf32>
  return %u : tensor<1x1x5x5xf32>
}
