// Convolutions in f32 that may be tf32 have their channels last and weights by columns where warpgroups multiply.
// RUN: o3c --model %s --target hopper -O2 --precision tf32 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper -O2 --emit rewrite -o - | FileCheck --check-prefix=ROWS %s
// RUN: o3c --model %s --target ampere -O2 --precision tf32 --emit rewrite -o - | FileCheck --check-prefix=ROWS %s
// RUN: o3c --model %s --target hopper -O2 --precision tf32 -o %t.ptx && FileCheck --check-prefix=PTX %s <%t.ptx

// CHECK: "o3.conv_last"({{.*}}columns = true{{.*}} tensor<7x8x7x8xf32>
// CHECK: "o3.conv_last"({{.*}}columns = true{{.*}} tensor<3x16x3x8xf32>
// CHECK: "o3.depthwise_last"({{.*}} tensor<3x3x16xf32>
// ROWS: "o3.conv_last"({{.*}} tensor<7x7x8x8xf32>
// ROWS: "o3.conv_last"({{.*}} tensor<3x3x8x16xf32>
// PTX: o3k_tf32_conv_
// PTX: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k8.f32.tf32.tf32
func.func @main(%x: tensor<2x3x20x20xf32>) -> tensor<2x16x10x10xf32> {
  %w = "o3.constant"() {value = dense<1.5> : tensor<8x3x7x7xf32>} : () -> tensor<8x3x7x7xf32>
  %v = "o3.constant"() {value = dense<1.5> : tensor<16x8x3x3xf32>} : () -> tensor<16x8x3x3xf32>
  %d = "o3.constant"() {value = dense<1.5> : tensor<16x1x3x3xf32>} : () -> tensor<16x1x3x3xf32>
  %a = "o3.conv"(%x, %w) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 3, 3, 3, 3>, group = 1 : i64}
      : (tensor<2x3x20x20xf32>, tensor<8x3x7x7xf32>) -> tensor<2x8x10x10xf32>
  %b = "o3.conv"(%a, %v) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, group = 1 : i64}
      : (tensor<2x8x10x10xf32>, tensor<16x8x3x3xf32>) -> tensor<2x16x10x10xf32>
  %c = "o3.conv"(%b, %d) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, group = 16 : i64}
      : (tensor<2x16x10x10xf32>, tensor<16x1x3x3xf32>) -> tensor<2x16x10x10xf32>
  return %c : tensor<2x16x10x10xf32>
}
