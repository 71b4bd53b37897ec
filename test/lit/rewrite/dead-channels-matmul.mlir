// RUN: o3-opt --dead-channels %s | FileCheck %s

// Rows of a matrix are inputs. Column 1 of %w is zero, so channel 1 of %y is what %b has, 2; row 2 of %v is zero, so
// channel 2 is not read. Sizes of a symbol stay.
// CHECK: "o3.matmul"({{.*}}) {o3.shape = [#[[MAP:.*]]]} : (tensor<?x2xf32>, tensor<2x1xf32>) -> tensor<?x1xf32>
// CHECK: "o3.add"({{.*}}) {o3.shape = [#[[MAP]]]} : (tensor<?x1xf32>, tensor<1xf32>) -> tensor<?x1xf32>
// CHECK: "o3.matmul"({{.*}}) {{.*}} : (tensor<?x1xf32>, tensor<1x2xf32>) -> tensor<?x2xf32>
// CHECK: %[[ROW:.*]] = "o3.constant"() {value = dense<[1.000000e+01, 1.200000e+01]> : tensor<2xf32>}
// CHECK: "o3.add"(%{{.*}}, %[[ROW]]) {{.*}} -> tensor<?x2xf32>
func.func @main(%x: tensor<?x2xf32> {o3.name = "x", o3.shape = affine_map<()[s0] -> (s0, 2)>}) -> (tensor<?x2xf32> {o3.name = "z", o3.shape = affine_map<()[s0] -> (s0, 2)>})
    attributes {o3.symbols = [{kind = "input", name = "N"}], o3.guards = []} {
  %w = "o3.constant"() {value = dense<[[1.0, 0.0, 5.0], [2.0, 0.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %b = "o3.constant"() {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %v = "o3.constant"() {value = dense<[[3.0, 4.0], [5.0, 6.0], [0.0, 0.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %p = "o3.matmul"(%x, %w) {o3.shape = [affine_map<()[s0] -> (s0, 3)>]} : (tensor<?x2xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
  %y = "o3.add"(%p, %b) {o3.shape = [affine_map<()[s0] -> (s0, 3)>]} : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %z = "o3.matmul"(%y, %v) {o3.shape = [affine_map<()[s0] -> (s0, 2)>]} : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
  return %z : tensor<?x2xf32>
}
