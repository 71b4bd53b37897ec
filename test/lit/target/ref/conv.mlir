// Convolutions are one contraction marked o3.kernel = "conv", over an input that is padded already; groups are a
// dimension only where a group has several channels; 16-bit sums are f32; the transposed one reads a spread input.
// RUN: o3-opt --lower %s | FileCheck %s

// CHECK-DAG: #[[DENSE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 * 2 + d5, d3 + d6)>
// CHECK-DAG: #[[DEPTH:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 + d4, d3 + d5)>
// CHECK-DAG: #[[GROUP:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 + d6, d4 + d7)>
// CHECK-DAG: #[[BACK:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 - d5 + 2, d3 - d6 + 2)>
module attributes {o3.stage = "normalize"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %b: tensor<6xf32>, %d: tensor<4x1x3x3xf32>,
                  %g: tensor<6x2x3x3xf32>, %h: tensor<1x4x8x8xf16>, %v: tensor<6x4x3x3xf16>, %t: tensor<4x6x3x3xf32>)
      -> (tensor<1x6x4x8xf32>, tensor<1x4x6x6xf32>, tensor<1x6x6x6xf32>, tensor<1x6x6x6xf16>, tensor<1x6x17x17xf32>)
      attributes {o3.symbols = [], o3.guards = []} {
    // CHECK: %[[PADDED:.*]] = tensor.insert_slice %arg0 into %{{.*}}[0, 0, 1, 1] [1, 4, 8, 8] [1, 1, 1, 1] : tensor<1x4x8x8xf32> into tensor<1x4x10x10xf32>
    // CHECK: linalg.generic {indexing_maps = [#[[DENSE]], {{.*}}"reduction", "reduction", "reduction"]} ins(%[[PADDED]], %arg1
    // CHECK-SAME: {o3.kernel = "conv"}
    %0 = "o3.conv"(%x, %w, %b) {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, group = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>, tensor<6xf32>) -> tensor<1x6x4x8xf32>
    // CHECK: linalg.generic {indexing_maps = [#[[DEPTH]]
    %1 = "o3.conv"(%x, %d) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 4 : i64} : (tensor<1x4x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x6x6xf32>
    // CHECK: tensor.expand_shape %arg0 {{.*}} into tensor<1x2x2x8x8xf32>
    // CHECK: linalg.generic {indexing_maps = [#[[GROUP]]
    // CHECK: tensor.collapse_shape {{.*}} into tensor<1x6x6x6xf32>
    %2 = "o3.conv"(%x, %g) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 2 : i64} : (tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x6x6xf32>
    // CHECK: outs(%{{.*}} : tensor<1x6x6x6xf32>) attrs = {{ *}}{o3.kernel = "conv"}
    // CHECK: arith.truncf %{{.*}} : f32 to f16
    %3 = "o3.conv"(%h, %v) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, group = 1 : i64} : (tensor<1x4x8x8xf16>, tensor<6x4x3x3xf16>) -> tensor<1x6x6x6xf16>
    // CHECK: tensor.insert_slice %arg0 into %{{.*}}[0, 0, 2, 2] [1, 4, 8, 8] [1, 1, 2, 2] : tensor<1x4x8x8xf32> into tensor<1x4x19x19xf32>
    // CHECK: linalg.generic {indexing_maps = [#[[BACK]]
    %4 = "o3.conv_transpose"(%x, %t) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, output_padding = array<i64: 0, 0>, group = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<4x6x3x3xf32>) -> tensor<1x6x17x17xf32>
    return %0, %1, %2, %3, %4 : tensor<1x6x4x8xf32>, tensor<1x4x6x6xf32>, tensor<1x6x6x6xf32>, tensor<1x6x6x6xf16>, tensor<1x6x17x17xf32>
  }
}
