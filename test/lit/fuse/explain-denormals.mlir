// RUN: o3c --model %s --target x86-64-v3 -O2 --explain --start-from rewrite --emit fuse -o %t.mlir 2>&1 | FileCheck %s
// All that the rewrite stage has noted of a product is told, before the reasons for its kernel.
//
// CHECK: k0_contraction_head
// CHECK-NEXT: head{{ +}}0 in place of denormal numbers: 2 of the weights
// CHECK-NEXT: head{{ +}}0 in place of denormal numbers: 1 of the biases
// CHECK-NEXT: head
func.func @main(%x: tensor<1x2x5x5xf32>) -> tensor<1x3x5x5xf32> {
  %w = "o3.constant"() {value = dense<[[[[2.0]], [[1.0e-40]]], [[[2.0]], [[1.0e-40]]], [[[2.0]], [[1.0]]]]> : tensor<3x2x1x1xf32>} : () -> tensor<3x2x1x1xf32>
  %b = "o3.constant"() {value = dense<[1.0, 1.0e-40, 2.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %y = "o3.conv"(%x, %w, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<3x2x1x1xf32>, tensor<3xf32>) -> tensor<1x3x5x5xf32> loc("head")
  return %y : tensor<1x3x5x5xf32>
}
