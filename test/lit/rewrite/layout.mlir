// RUN: o3-opt --layout --simplify %s | FileCheck %s
// Convolutions, and what lies between them, are in blocks of channels; conversions stay at the edges.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<1x3x8x8xf32>, %a: tensor<5x20xf32>) -> (tensor<1x40x8x8xf32>, tensor<5x17xf32>)
      attributes {o3.symbols = [], o3.guards = []} {
    %w1 = "o3.constant"() {value = dense<1.0> : tensor<32x3x3x3xf32>} : () -> tensor<32x3x3x3xf32>
    %w2 = "o3.constant"() {value = dense<1.0> : tensor<32x1x3x3xf32>} : () -> tensor<32x1x3x3xf32>
    %w3 = "o3.constant"() {value = dense<1.0> : tensor<40x32x1x1xf32>} : () -> tensor<40x32x1x1xf32>
    %b3 = "o3.constant"() {value = dense<1.0> : tensor<40xf32>} : () -> tensor<40xf32>
    %zero = "o3.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    // Three channels stay apart: nothing moves.
    // CHECK-NOT: "o3.transpose"(%arg0
    // CHECK: "o3.conv_blocked"({{.*}}tensor<2x3x3x3x1x16xf32>) -> tensor<1x2x8x8x16xf32>
    %c1 = "o3.conv"(%x, %w1) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 1 : i64}
        : (tensor<1x3x8x8xf32>, tensor<32x3x3x3xf32>) -> tensor<1x32x8x8xf32>
    // CHECK-NEXT: "o3.max"({{.*}} -> tensor<1x2x8x8x16xf32>
    %r1 = "o3.max"(%c1, %zero) : (tensor<1x32x8x8xf32>, tensor<f32>) -> tensor<1x32x8x8xf32>
    // CHECK-NOT: "o3.transpose"({{.*}}tensor<1x2x8x8x16xf32>)
    // CHECK: "o3.depthwise_blocked"({{.*}}tensor<2x3x3x16xf32>) -> tensor<1x2x8x8x16xf32>
    %c2 = "o3.conv"(%r1, %w2) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 32 : i64}
        : (tensor<1x32x8x8xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x8x8xf32>
    // 40 channels are three blocks, of which the plain result is a slice; the last one is half of one.
    // CHECK: "o3.conv_blocked"({{.*}}channels = array<i64: 32, 40>{{.*}}tensor<3x2x1x1x16x16xf32>, tensor<3x16xf32>) -> tensor<1x3x8x8x16xf32>
    // CHECK: "o3.transpose"
    // CHECK: "o3.slice"({{.*}} -> tensor<1x40x8x8xf32>
    %c3 = "o3.conv"(%c2, %w3, %b3) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, group = 1 : i64}
        : (tensor<1x32x8x8xf32>, tensor<40x32x1x1xf32>, tensor<40xf32>) -> tensor<1x40x8x8xf32>
    // CHECK: "o3.matmul_packed"({{.*}}tensor<5x20xf32>, tensor<2x20x16xf32>) -> tensor<5x17xf32>
    %m = "o3.constant"() {value = dense<1.0> : tensor<20x17xf32>} : () -> tensor<20x17xf32>
    %p = "o3.matmul"(%a, %m) : (tensor<5x20xf32>, tensor<20x17xf32>) -> tensor<5x17xf32>
    return %c3, %p : tensor<1x40x8x8xf32>, tensor<5x17xf32>
  }
}
