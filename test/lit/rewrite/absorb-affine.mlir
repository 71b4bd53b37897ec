// RUN: o3-opt --absorb-affine %s | FileCheck %s
// A factor that is computed from constants is as good as a constant: long ones are not folded yet.
//
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = "o3.sqrt"
// CHECK: "o3.mul"(%{{.*}}, %{{.*}}) {{.*}}-> tensor<4x3x1x1xf32>
// CHECK: "o3.conv"
// CHECK-NOT: "o3.mul"
// CHECK: return
func.func @main(%x: tensor<1x3x5x5xf32>) -> tensor<1x4x5x5xf32> {
  %w = "o3.constant"() {value = dense<1.0> : tensor<4x3x1x1xf32>} : () -> tensor<4x3x1x1xf32>
  %v = "o3.constant"() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %s = "o3.sqrt"(%v) : (tensor<4xf32>) -> tensor<4xf32>
  %t = "o3.reshape"(%s) : (tensor<4xf32>) -> tensor<4x1x1xf32>
  %y = "o3.conv"(%x, %w) {dilations = array<i64: 1, 1>, group = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x3x5x5xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x5x5xf32>
  %z = "o3.mul"(%y, %t) : (tensor<1x4x5x5xf32>, tensor<4x1x1xf32>) -> tensor<1x4x5x5xf32>
  return %z : tensor<1x4x5x5xf32>
}
