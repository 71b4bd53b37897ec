// RUN: o3-opt --dead-channels --check-equal %s | FileCheck %s

// The first product's outputs 1 and 2 are zero: 1 is 3 after the bias, 2 is relu(-1) = 0. Output 3 is not read by the
// second product. What is left is output 0; the 3 goes into the second bias, 2 * 3 for its only output.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]]: tensor<1x2x5x5xf32>
// CHECK-DAG: %[[W:.*]] = "o3.constant"() {value = dense<{{.*}}[1.000000e+00]{{.*}}[2.000000e+00]{{.*}}> : tensor<1x2x1x1xf32>}
// CHECK-DAG: %[[B:.*]] = "o3.constant"() {value = dense<5.000000e-01> : tensor<1xf32>}
// CHECK: %[[Y:.*]] = "o3.conv"(%[[X]], %[[W]], %[[B]]) {{.*}} -> tensor<1x1x5x5xf32>
// CHECK: %[[Z:.*]] = "o3.max"(%[[Y]], %{{.*}}) : (tensor<1x1x5x5xf32>, tensor<f32>) -> tensor<1x1x5x5xf32>
// CHECK-DAG: %[[V:.*]] = "o3.constant"() {value = dense<1.000000e+00> : tensor<1x1x1x1xf32>}
// CHECK-DAG: %[[C:.*]] = "o3.constant"() {value = dense<6.000000e+00> : tensor<1xf32>}
// CHECK: %[[U:.*]] = "o3.conv"(%[[Z]], %[[V]], %[[C]]) {{.*}} -> tensor<1x1x5x5xf32>
// CHECK: return %[[U]]
func.func @main(%x: tensor<1x2x5x5xf32> {o3.name = "x"}) -> (tensor<1x1x5x5xf32> {o3.name = "u"}) {
  %w = "o3.constant"() {value = dense<[[[[1.0]], [[2.0]]], [[[0.0]], [[0.0]]], [[[0.0]], [[-0.0]]], [[[3.0]], [[4.0]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
  %b = "o3.constant"() {value = dense<[0.5, 3.0, -1.0, 7.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %zero = "o3.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %v = "o3.constant"() {value = dense<[[[[1.0]], [[2.0]], [[5.0]], [[0.0]]]]> : tensor<1x4x1x1xf32>} : () -> tensor<1x4x1x1xf32>
  %y = "o3.conv"(%x, %w, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x1x1xf32>, tensor<4xf32>) -> tensor<1x4x5x5xf32>
  %z = "o3.max"(%y, %zero) : (tensor<1x4x5x5xf32>, tensor<f32>) -> tensor<1x4x5x5xf32>
  %u = "o3.conv"(%z, %v) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 1 : i64} : (tensor<1x4x5x5xf32>, tensor<1x4x1x1xf32>) -> tensor<1x1x5x5xf32>
  return %u : tensor<1x1x5x5xf32>
}
