// RUN: o3-opt --flush-denormals %s | FileCheck %s
// Weights and biases of products lose their denormals beside far larger numbers, 1e-40 here, not the least normal number; the sum, which reads the
// same constant, does not. Constants of denormals and small numbers alone keep theirs. Counts are noted for --explain.
//
// CHECK: o3.choices = {{\[}}["o3.conv", "0 in place of denormal numbers: 4 of the weights"],
// CHECK-SAME: ["o3.conv", "0 in place of denormal numbers: 2 of the biases"],
// CHECK-SAME: ["o3.matmul", "0 in place of denormal numbers: 2 of the weights"]]
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[OLD:.*]] = "o3.constant"() {value = dense<[1.{{0*}}e+00, 9.9999{{[0-9]*}}e-41, 1.175494{{[0-9]*}}E-38, -9.9999{{[0-9]*}}e-41]>
// CHECK-DAG: %[[NEW:.*]] = "o3.constant"() {value = dense<[1.{{0*}}e+00, 0.{{0*}}e+00, 1.175494{{[0-9]*}}E-38, -0.{{0*}}e+00]>
// CHECK-DAG: %[[W:.*]] = "o3.constant"() {value = dense<{{.*}}2.{{0*}}e+00{{.*}}0.{{0*}}e+00{{.*}}> : tensor<4x2x1x1xf32>
// CHECK: "o3.conv"(%{{.*}}, %[[W]], %[[NEW]])
// CHECK: "o3.add"(%{{.*}}, %[[OLD]])
func.func @main(%x: tensor<1x2x5x5xf32>, %z: tensor<4xf32>) -> (tensor<1x4x5x5xf32>, tensor<4xf32>) {
  %w = "o3.constant"() {value = dense<[[[[2.0]], [[1.0e-40]]], [[[2.0]], [[1.0e-40]]], [[[2.0]], [[1.0e-40]]], [[[2.0]], [[1.0e-40]]]]> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
  %b = "o3.constant"() {value = dense<[1.0, 1.0e-40, 1.17549435e-38, -1.0e-40]> : tensor<4xf32>} : () -> tensor<4xf32>
  %y = "o3.conv"(%x, %w, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x1x1xf32>, tensor<4xf32>) -> tensor<1x4x5x5xf32>
  %s = "o3.add"(%z, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %s : tensor<1x4x5x5xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @small
// CHECK-DAG: %[[ALONE:.*]] = "o3.constant"() {value = dense<{{.*}}9.9999{{[0-9]*}}e-41{{.*}}> : tensor<2x2xf32>}
// CHECK-DAG: %[[LEAST:.*]] = "o3.constant"() {value = dense<{{.*}}7.8886{{[0-9]*}}E-31, 0.{{0*}}e+00{{.*}}> : tensor<2x2xf32>}
// CHECK: "o3.matmul"(%{{.*}}, %[[ALONE]])
// CHECK: "o3.matmul"(%{{.*}}, %[[LEAST]])
func.func @small(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = "o3.constant"() {value = dense<[[7.8e-31, 1.0e-40], [1.0e-40, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %v = "o3.constant"() {value = dense<[[7.88860905e-31, 1.0e-40], [1.0e-40, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %y = "o3.matmul"(%x, %w) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %z = "o3.matmul"(%y, %v) : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %z : tensor<3x2xf32>
}
