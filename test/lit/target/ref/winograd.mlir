// RUN: o3-opt --lower %s | FileCheck %s
// A Winograd convolution is two transforms and a product between them; 5 x 5 outputs are 2 x 2 tiles of 4, which
// read 10 x 10 positions.

// CHECK-DAG: affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8) -> (d0, d3, d4 * 4 + d7, d5 * 4 + d8, d6)>
// CHECK-DAG: affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d5, d6, d1, d2 floordiv 4, d3 floordiv 4, d4)>
// CHECK-DAG: affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d2 mod 4, d5)>
// CHECK-LABEL: func.func @main
module {
  func.func @main(%x: tensor<1x2x5x5x16xf32>, %u: tensor<3x6x6x2x16x16xf32>, %b: tensor<3x16xf32>)
      -> tensor<1x3x5x5x16xf32> attributes {o3.symbols = [], o3.guards = []} {
    // CHECK: tensor.extract %arg0
    // CHECK: -> tensor<1x2x10x10x16xf32>
    // CHECK: linalg.generic{{.*}}"reduction", "reduction"{{.*}}o3.kernel = "winograd_input"
    // CHECK: -> tensor<1x6x6x2x2x2x16xf32>
    // CHECK: linalg.generic{{.*}}%arg1{{.*}}o3.kernel = "winograd_product"
    // CHECK: -> tensor<1x6x6x3x2x2x16xf32>
    // CHECK: linalg.generic{{.*}}o3.kernel = "winograd_output"
    // CHECK: -> tensor<1x3x5x5x16xf32>
    %y = "o3.winograd_blocked"(%x, %u, %b) {pads = array<i64: 1, 1, 1, 1>, tile = 4 : i64}
        : (tensor<1x2x5x5x16xf32>, tensor<3x6x6x2x16x16xf32>, tensor<3x16xf32>) -> tensor<1x3x5x5x16xf32>
    return %y : tensor<1x3x5x5x16xf32>
  }
}
