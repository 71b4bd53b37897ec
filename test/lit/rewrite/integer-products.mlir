// RUN: o3c --model %s --target x86-64-v3 -O1 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper -O1 --emit rewrite -o - | FileCheck %s --check-prefix=GPU
// On a CPU products of 8-bit integers are computed in f32, where their sums are exact, and casts of them to f32 are left
// out. Of weights that are not known all may be the largest: 300 products are two sums. A convolution may not become one
// by Winograd, and its bias is added to the integers. Cards compute integers.
//
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xui8>
// CHECK: %[[F:.*]] = "o3.cast"(%[[X]]) {{.*}} -> tensor<4x8xf32>
// CHECK: %[[C:.*]] = "o3.sub"(%[[F]], {{.*}} -> tensor<4x8xf32>
// CHECK: %[[W:.*]] = "o3.constant"() {{.*}} -> tensor<8x8xf32>
// CHECK: %[[P:.*]] = "o3.matmul"(%[[C]], %[[W]]) : {{.*}} -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = "o3.mul"(%[[P]], {{.*}} -> tensor<4x8xf32>
// CHECK: "o3.slice"({{.*}} -> tensor<4x150xf32>
// CHECK: %[[A:.*]] = "o3.matmul"({{.*}} -> tensor<4x4xf32>
// CHECK: %[[AI:.*]] = "o3.cast"(%[[A]]) {to = i32}
// CHECK: %[[B:.*]] = "o3.matmul"({{.*}} -> tensor<4x4xf32>
// CHECK: %[[BI:.*]] = "o3.cast"(%[[B]]) {to = i32}
// CHECK: %[[L:.*]] = "o3.add"(%[[AI]], %[[BI]])
// CHECK: %[[V:.*]] = "o3.conv"({{.*}}o3.exact = true{{.*}} -> tensor<1x2x5x5xf32>
// CHECK: %[[VI:.*]] = "o3.cast"(%[[V]]) {to = i32}
// CHECK: %[[Y:.*]] = "o3.add"(%[[VI]], {{.*}} -> tensor<1x2x5x5xi32>
// CHECK: return %[[S]], %[[L]], %[[Y]]
//
// GPU: "o3.matmul"({{.*}} -> tensor<4x8xi32>
// GPU: "o3.matmul"({{.*}} -> tensor<4x4xi32>
// GPU: "o3.conv"({{.*}} -> tensor<1x2x5x5xi32>
func.func @main(%x: tensor<4x8xui8>, %z: tensor<ui8>, %a: tensor<4x300xui8>, %b: tensor<300x4xui8>, %i: tensor<1x3x5x5xui8>) -> (tensor<4x8xf32>, tensor<4x4xi32>, tensor<1x2x5x5xi32>) {
  %w = "o3.constant"() {value = dense<3> : tensor<8x8xi8>} : () -> tensor<8x8xi8>
  %xi = "o3.cast"(%x) {to = i32} : (tensor<4x8xui8>) -> tensor<4x8xi32>
  %zi = "o3.cast"(%z) {to = i32} : (tensor<ui8>) -> tensor<i32>
  %c = "o3.sub"(%xi, %zi) : (tensor<4x8xi32>, tensor<i32>) -> tensor<4x8xi32>
  %p = "o3.matmul"(%c, %w) {acc = i32} : (tensor<4x8xi32>, tensor<8x8xi8>) -> tensor<4x8xi32>
  %f = "o3.cast"(%p) {to = f32} : (tensor<4x8xi32>) -> tensor<4x8xf32>
  %scale = "o3.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %s = "o3.mul"(%f, %scale) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %l = "o3.matmul"(%a, %b) {acc = i32} : (tensor<4x300xui8>, tensor<300x4xui8>) -> tensor<4x4xi32>
  %k = "o3.constant"() {value = dense<-2> : tensor<2x3x3x3xi8>} : () -> tensor<2x3x3x3xi8>
  %bias = "o3.constant"() {value = dense<[70000, -5]> : tensor<2xi32>} : () -> tensor<2xi32>
  %y = "o3.conv"(%i, %k, %bias) {acc = i32, dilations = array<i64: 1, 1>, group = 1 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x3x5x5xui8>, tensor<2x3x3x3xi8>, tensor<2xi32>) -> tensor<1x2x5x5xi32>
  return %s, %l, %y : tensor<4x8xf32>, tensor<4x4xi32>, tensor<1x2x5x5xi32>
}
