// RUN: o3-opt --cpu-weights %s | FileCheck %s
// Constants beyond 1 KB leave the module, once each, in the order of their use; small ones stay.

// CHECK: module attributes {o3.weights = [{symbol = "o3w_conv1", value = dense<3.000000e+00> : tensor<32x32xf32>}
// CHECK-SAME: {symbol = "o3w_conv1_1", value = dense<2.000000e+00> : tensor<32x32xf32>}]}
// CHECK-DAG: memref.global @o3w_conv1 : memref<32x32xf32> {alignment = 64 : i64}
// CHECK-DAG: memref.global @o3w_conv1_1 : memref<32x32xf32>
module {
  // CHECK-LABEL: func.func @main
  func.func @main() -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<4xf32>, tensor<32x32xf32>) {
    // CHECK: %[[M:.*]] = memref.get_global @o3w_conv1_1 :
    // CHECK: bufferization.to_tensor %[[M]] restrict : memref<32x32xf32> to tensor<32x32xf32>
    %a = arith.constant dense<2.0> : tensor<32x32xf32> loc("conv1")
    // CHECK: memref.get_global @o3w_conv1 :
    %b = arith.constant dense<3.0> : tensor<32x32xf32> loc("conv1")
    // CHECK: arith.constant dense<1.000000e+00> : tensor<4xf32>
    %c = arith.constant dense<1.0> : tensor<4xf32>
    // CHECK: memref.get_global @o3w_conv1_1 :
    %d = arith.constant dense<2.0> : tensor<32x32xf32> loc("again")
    return %b, %a, %c, %d : tensor<32x32xf32>, tensor<32x32xf32>, tensor<4xf32>, tensor<32x32xf32>
  }
}
