// RUN: o3-opt --target hopper --layout --simplify %s | FileCheck %s
// A transposed convolution with the channels last is a convolution whose outputs are the phases of all outputs (of 11, 16
// with zeros, in 4 phases), and a copy that puts them between one another. Of fewer outputs than a block, the phases are
// the channels of one block.
//
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = "o3.conv_last"({{.*}}) {{.*}}pads = array<i64: 0, 0, 0, 0>{{.*}} -> tensor<2x1x7x9x64xf16>
// CHECK: %[[P:.*]] = "o3.reshape"(%[[C]]) : {{.*}} -> tensor<2x1x7x9x2x2x16xf16>
// CHECK: %[[T:.*]] = "o3.transpose"(%[[P]]) {perm = array<i64: 0, 1, 2, 4, 3, 5, 6>} : {{.*}} -> tensor<2x1x7x2x9x2x16xf16>
// CHECK: "o3.reshape"(%[[T]]) : {{.*}} -> tensor<2x1x14x18x16xf16>
// CHECK: %[[D:.*]] = "o3.conv_last"({{.*}}) {{.*}}pads = array<i64: 1, 1, 1, 1>{{.*}} -> tensor<2x1x15x19x8xf16>
// CHECK: "o3.slice"(%[[D]])
// CHECK: "o3.transpose"({{.*}}) {perm = array<i64: 0, 3, 1, 4, 2, 5>} : {{.*}} -> tensor<2x1x15x2x19x2xf16>
module attributes {o3.stage = "rewrite"} {
  func.func @main(%x: tensor<2x8x7x9xf16>) -> tensor<2x1x29x37xf16> attributes {o3.symbols = [], o3.guards = []} {
    %w = "o3.constant"() {value = dense<0.5> : tensor<8x11x2x2xf16>} : () -> tensor<8x11x2x2xf16>
    %b = "o3.constant"() {value = dense<0.25> : tensor<11xf16>} : () -> tensor<11xf16>
    %v = "o3.constant"() {value = dense<0.5> : tensor<11x1x3x3xf16>} : () -> tensor<11x1x3x3xf16>
    %y = "o3.conv_transpose"(%x, %w, %b) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64} : (tensor<2x8x7x9xf16>, tensor<8x11x2x2xf16>, tensor<11xf16>) -> tensor<2x11x14x18xf16>
    %z = "o3.conv_transpose"(%y, %v) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64} : (tensor<2x11x14x18xf16>, tensor<11x1x3x3xf16>) -> tensor<2x1x29x37xf16>
    return %z : tensor<2x1x29x37xf16>
  }
}
