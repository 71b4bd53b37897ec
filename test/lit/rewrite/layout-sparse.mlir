// RUN: o3-opt --layout --simplify %s | FileCheck %s
// Marked products get the blocks of their weights that are not zero, and where these are.

module {
  // CHECK: #[[CONV:.*]] = #sparse_tensor.encoding<{ map = (d0, d1, d2, d3) -> (d0 floordiv 16 : dense, d1 floordiv 16 : compressed(nonunique), d2 : singleton(nonunique), d3 : singleton, d1 mod 16 : dense, d0 mod 16 : dense), posWidth = 32, crdWidth = 32 }>
  // CHECK: #[[MATRIX:.*]] = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 floordiv 8 : dense, d0 : compressed, d1 mod 8 : dense)
  // CHECK: #[[GROUPS:.*]] = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 floordiv 4 : dense, d0 mod 4 : structured[1, 4]), crdWidth = 32 }>
  // CHECK: #[[ROWS:.*]] = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 32, crdWidth = 32 }>
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<1x32x8x8xf32>, %a: tensor<5x4xf32>, %b: tensor<2x70x4xf32>)
      -> (tensor<1x40x8x8xf32>, tensor<5x17xf32>, tensor<5x17xf32>, tensor<5x17xf32>, tensor<2x70x17xf32>)
      attributes {o3.symbols = [], o3.guards = []} {
    // No weight but zeros: one entry, which none of the three rows has; parts of equal work
    // are a row each.
    // CHECK-DAG: value = dense<[0, 0, 0, 0, 0, 1, 2, 3]> : tensor<8xi32>
    // CHECK-DAG: value = dense<0.000000e+00> : tensor<1x16x16xf32>
    %w = "o3.constant"() {value = dense<0.0> : tensor<40x32x1x1xf32>} : () -> tensor<40x32x1x1xf32>
    // CHECK: "o3.conv_sparse"({{.*}}) {dilations = array<i64: 1, 1>, encoding = #[[CONV]], {{.*}}(tensor<1x2x8x8x16xf32>, tensor<1x16x16xf32>, tensor<8xi32>, tensor<2xi32>) -> tensor<1x3x8x8x16xf32>
    %c = "o3.conv"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>,
        group = 1 : i64, o3.sparse_format = "bsr-16x16"}
        : (tensor<1x32x8x8xf32>, tensor<40x32x1x1xf32>) -> tensor<1x40x8x8xf32>
    // Columns 0 and 16 of the matrix, in rows 1 and 2: of four blocks of eight columns the first and the third;
    // the second part begins at the second 16 columns.
    // The last column is no entry's: a constant of equal numbers would be folded into its readers.
    // CHECK-DAG: value = dense<[0, 1, 1, 2, 2, 0, 1, 2]> : tensor<8xi32>
    // CHECK-DAG: value = dense<[1, 2, 3]> : tensor<3xi32>
    %m = "o3.constant"() {value = dense<[
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<4x17xf32>}
        : () -> tensor<4x17xf32>
    // CHECK: "o3.matmul_sparse"({{.*}}) {encoding = #[[MATRIX]]} : (tensor<5x4xf32>, tensor<2x1x8xf32>, tensor<8xi32>, tensor<3xi32>) -> tensor<5x17xf32>
    %p = "o3.matmul"(%a, %m) {o3.sparse_format = "bsr-8x1"} : (tensor<5x4xf32>, tensor<4x17xf32>) -> tensor<5x17xf32>
    // 1:4: of the 16 inputs (four exist) four numbers each, two of them of the first eight; rows 1 and 2 of the matrix are
    // places 1 and 2, of lane 0. The second block of columns has one column of the 17.
    // CHECK-DAG: value = dense<{{\[}}[0, 1, 0, 0, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0]]> : tensor<3x9xi32>
    // CHECK: "o3.matmul_sparse"({{.*}}) {encoding = #[[GROUPS]]} : (tensor<5x4xf32>, tensor<2x2x2x16xf32>, tensor<6xi32>, tensor<3x9xi32>) -> tensor<5x17xf32>
    %g = "o3.matmul"(%a, %m) {o3.sparse_format = "nm-1:4"} : (tensor<5x4xf32>, tensor<4x17xf32>) -> tensor<5x17xf32>
    // Compressed rows read panels: all five rows in one of 16, which transposition makes of three neighbours each; of
    // two batches of 70 rows two panels of 128.
    // CHECK: %[[PAD:.*]] = "o3.pad"({{.*}} -> tensor<16x4xf32>
    // CHECK: %[[SPLIT:.*]] = "o3.reshape"(%[[PAD]]){{.*}} -> tensor<1x16x4xf32>
    // CHECK: %[[PANEL:.*]] = "o3.transpose"(%[[SPLIT]]) {perm = array<i64: 0, 2, 1>} : (tensor<1x16x4xf32>) -> tensor<1x4x16xf32>
    // CHECK: "o3.matmul_sparse"(%[[PANEL]], {{.*}}) {encoding = #[[ROWS]]} : (tensor<1x4x16xf32>, tensor<2xf32>, tensor<20xi32>, tensor<3xi32>) -> tensor<5x17xf32>
    %q = "o3.matmul"(%a, %m) {o3.sparse_format = "csr"} : (tensor<5x4xf32>, tensor<4x17xf32>) -> tensor<5x17xf32>
    // CHECK: %[[BATCH:.*]] = "o3.matmul_sparse"({{.*}}) {encoding = #[[ROWS]]} : (tensor<2x4x128xf32>, {{.*}} -> tensor<140x17xf32>
    // CHECK: "o3.reshape"(%[[BATCH]]) {{.*}} -> tensor<2x70x17xf32>
    %s = "o3.matmul"(%b, %m) {o3.sparse_format = "csr"} : (tensor<2x70x4xf32>, tensor<4x17xf32>) -> tensor<2x70x17xf32>
    return %c, %p, %g, %q, %s : tensor<1x40x8x8xf32>, tensor<5x17xf32>, tensor<5x17xf32>, tensor<5x17xf32>, tensor<2x70x17xf32>
  }
}
