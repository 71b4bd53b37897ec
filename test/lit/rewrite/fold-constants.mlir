// RUN: o3-opt --fold-constants %s | FileCheck %s
// What depends on constants alone is a constant, and what nobody reads is not computed.
//
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[SUM:.*]] = "o3.constant"() {value = dense<[6.000000e+00, 8.000000e+00, 1.000000e+01, 1.200000e+01]>
// CHECK-NEXT: %[[Y:.*]] = "o3.add"(%arg0, %[[SUM]])
// CHECK-NEXT: return %[[Y]]

func.func @main(%x: tensor<2x4xf32> {o3.name = "x", o3.shape = affine_map<() -> (2, 4)>}) -> tensor<2x4xf32> {
  %a = "o3.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %b = "o3.constant"() {value = dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %c = "o3.constant"() {value = dense<[2.0, 2.0, 3.0, 3.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %product = "o3.mul"(%c, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %unread = "o3.sub"(%product, %c) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sum = "o3.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = "o3.add"(%x, %sum) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
