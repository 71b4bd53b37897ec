// RUN: o3-opt --layout --simplify %s | FileCheck %s
// Parts of whole halves of blocks are joined in blocks: 24 and 8 channels are two blocks, of which the second has a
// half of either.

// CHECK-LABEL: func.func @main
// CHECK-NOT: "o3.transpose"({{.*}}tensor<1x2x8x8x16xf32>)
// CHECK-DAG: [[WHOLE:%[0-9]+]] = "o3.slice"({{.*}} -> tensor<1x1x8x8x16xf32>
// CHECK-DAG: [[HALVES:%[a-z0-9_]+]] = tensor.concat dim(4) {{.*}} : (tensor<1x1x8x8x8xf32>, tensor<1x1x8x8x8xf32>) -> tensor<1x1x8x8x16xf32>
// CHECK: tensor.concat dim(1) [[WHOLE]], [[HALVES]]
// CHECK: "o3.conv_blocked"
func.func @main(%x: tensor<1x3x8x8xf32>) -> tensor<1x16x8x8xf32> attributes {o3.symbols = [], o3.guards = []} {
  %w1 = "o3.constant"() {value = dense<1.0> : tensor<24x3x1x1xf32>} : () -> tensor<24x3x1x1xf32>
  %w2 = "o3.constant"() {value = dense<1.0> : tensor<8x3x1x1xf32>} : () -> tensor<8x3x1x1xf32>
  %w3 = "o3.constant"() {value = dense<1.0> : tensor<16x32x1x1xf32>} : () -> tensor<16x32x1x1xf32>
  %a = "o3.conv"(%x, %w1) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>,
      group = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<24x3x1x1xf32>) -> tensor<1x24x8x8xf32>
  %b = "o3.conv"(%x, %w2) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>,
      group = 1 : i64} : (tensor<1x3x8x8xf32>, tensor<8x3x1x1xf32>) -> tensor<1x8x8x8xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<1x24x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x32x8x8xf32>
  %y = "o3.conv"(%c, %w3) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>,
      group = 1 : i64} : (tensor<1x32x8x8xf32>, tensor<16x32x1x1xf32>) -> tensor<1x16x8x8xf32>
  return %y : tensor<1x16x8x8xf32>
}
