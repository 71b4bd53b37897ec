// RUN: o3-opt --simplify %s | FileCheck %s
// A float to the power 2 is a square, whatever its type and that of the 2; other powers stay.
//
// CHECK-LABEL: func.func @main
// CHECK-DAG: "o3.mul"(%[[A:.*]], %[[A]]) : (tensor<4xf16>
// CHECK-DAG: "o3.mul"(%[[B:.*]], %[[B]]) : (tensor<4xbf16>
// CHECK-DAG: "o3.mul"(%[[C:.*]], %[[C]]) : (tensor<4xf32>
// CHECK-DAG: "o3.mul"(%[[D:.*]], %[[D]]) : (tensor<4xf64>
// CHECK-DAG: "o3.pow"({{.*}} : (tensor<4xf32>, tensor<f32>)
// CHECK: return
func.func @main(%a: tensor<4xf16>, %b: tensor<4xbf16>, %c: tensor<4xf32>, %d: tensor<4xf64>) -> (tensor<4xf16>, tensor<4xbf16>, tensor<4xf32>, tensor<4xf64>, tensor<4xf32>) {
  %h = "o3.constant"() {value = dense<2.0> : tensor<f16>} : () -> tensor<f16>
  %g = "o3.constant"() {value = dense<2.0> : tensor<bf16>} : () -> tensor<bf16>
  %s = "o3.constant"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %l = "o3.constant"() {value = dense<2.0> : tensor<f64>} : () -> tensor<f64>
  %three = "o3.constant"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %0 = "o3.pow"(%a, %h) : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  %1 = "o3.pow"(%b, %g) : (tensor<4xbf16>, tensor<bf16>) -> tensor<4xbf16>
  %2 = "o3.pow"(%c, %s) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %3 = "o3.pow"(%d, %l) : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  %4 = "o3.pow"(%c, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4 : tensor<4xf16>, tensor<4xbf16>, tensor<4xf32>, tensor<4xf64>, tensor<4xf32>
}
