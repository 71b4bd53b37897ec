// RUN: o3-opt --simplify %s | FileCheck %s
// The logarithm of a softmax is taken of x - max - log(sum), where f32 holds what the probability is too small for;
// the softmax stays for what else reads it.

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[P:.*]] = "o3.softmax"(%[[X:.*]]) {axis = 1 : i64} :
// CHECK-DAG: %[[L:.*]] = "o3.softmax"(%[[X]]) {axis = 1 : i64, log = true} :
// CHECK-NOT: o3.log
// CHECK: "o3.add"(%[[P]], %[[L]])
func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %p = "o3.softmax"(%x) {axis = 1 : i64} : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %l = "o3.log"(%p) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %y = "o3.add"(%p, %l) : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}
