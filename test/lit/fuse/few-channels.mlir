// RUN: o3-opt --target x86-64-v4 --level 2 --layout --simplify --fold-constants --lower --fuse --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// The first convolution of a network reads the image as it comes: nothing is moved, and no border is made. Rows
// of the window are cut off by the loop around the tiles, columns in tiles that are made for the row's ends.

// CHECK-LABEL: func.func @main
// CHECK-NOT: memref<1x3x34x34
// CHECK: arith.maxsi
// CHECK: call @o3k_f32_tile_16x16_s2_u3_t1_1to33
// CHECK-NOT: memref<1x3x34x34
func.func @main(%x: tensor<1x3x32x32xf32>) -> tensor<1x16x16x16xf32> attributes {o3.symbols = [], o3.guards = []} {
  %w = "o3.constant"() {value = dense<1.0> : tensor<16x3x3x3xf32>} : () -> tensor<16x3x3x3xf32>
  %y = "o3.conv"(%x, %w) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, group = 1 : i64}
      : (tensor<1x3x32x32xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x16x16xf32>
  return %y : tensor<1x16x16x16xf32>
}
