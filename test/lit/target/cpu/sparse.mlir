// RUN: o3-opt --target x86-64-v4 --level 2 --lower --fuse --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// A product with sparse weights calls tiles with the entries of its block; what follows it is in the tile.

module attributes {o3.stage = "rewrite"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<1x2x9x9x16xf32>, %a: tensor<9x64xf32>, %v: tensor<5x16x16xf32>, %rows: tensor<8xi32>,
                  %columns: tensor<5xi32>, %image: tensor<1x3x9x9xf32>, %n: tensor<6xf32>, %ends: tensor<18xi32>,
                  %at: tensor<6xi32>, %u: tensor<7x16x8xf32>, %starts: tensor<8xi32>, %places: tensor<7xi32>,
                  %panels: tensor<1x64x48xf32>, %ends17: tensor<20xi32>,
                  %halves: tensor<3x2x4x16xf32>, %starts2: tensor<6xi32>, %places17: tensor<3x17xi32>)
      -> (tensor<1x3x7x7x16xf32>, tensor<9x17xf32>, tensor<1x8x7x7xf32>, tensor<41x17xf32>, tensor<9x17xf32>) attributes {o3.symbols = [], o3.guards = []} {
    // Work is what is stored: 2 * 5 * 16 * 16 * 49, and a maximum for each of 48 * 49 elements.
    // CHECK: arith.constant 127792 : i64
    // Seven pixels of a row, with the limits of a row of entries.
    // CHECK: scf.parallel
    // CHECK: memref.load %{{.*}} : memref<?xi32
    // CHECK: func.call @o3k_f32_sparse_7x16_d16_s16_u4_a[[HASH:[0-9a-f]+]](
    %zero = "o3.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %c = "o3.conv_sparse"(%x, %v, %rows, %columns) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, encoding = unit}
        : (tensor<1x2x9x9x16xf32>, tensor<5x16x16xf32>, tensor<8xi32>, tensor<5xi32>) -> tensor<1x3x7x7x16xf32>
    %r = "o3.max"(%c, %zero) : (tensor<1x3x7x7x16xf32>, tensor<f32>) -> tensor<1x3x7x7x16xf32>
    // CHECK: arith.constant 588 : i64
    // Compressed rows: six rows of nine positions and seven more are four vectors.
    // CHECK: func.call @o3k_f32_rows_4x16
    %s = "o3.conv_sparse"(%image, %n, %ends, %at) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 0, 0, 0, 0>, encoding = unit}
        : (tensor<1x3x9x9xf32>, tensor<6xf32>, tensor<18xi32>, tensor<6xi32>) -> tensor<1x8x7x7xf32>
    // CHECK: arith.constant 16128 : i64
    // Blocks of eight columns: two calls for 16, and of the last one column is there.
    // CHECK: func.call @o3k_f32_sparse_5x8_d16_s64_u4
    // CHECK: func.call @o3k_f32_sparse_5x8_d16_s64_u4
    // CHECK: func.call @o3k_f32_sparse_masked_5x8_d16_s64_u4
    %p = "o3.matmul_sparse"(%a, %u, %starts, %places) {encoding = unit}
        : (tensor<9x64xf32>, tensor<7x16x8xf32>, tensor<8xi32>, tensor<7xi32>) -> tensor<9x17xf32>
    // Compressed rows of a matrix: groups of 16 columns, a panel of 41 rows in three vectors.
    // CHECK: arith.constant 492 : i64
    // CHECK: scf.for
    // CHECK: func.call @o3k_f32_panel_3x16_p48
    %m = "o3.matmul_sparse"(%panels, %n, %ends17, %at) {encoding = unit}
        : (tensor<1x64x48xf32>, tensor<6xf32>, tensor<20xi32>, tensor<6xi32>) -> tensor<41x17xf32>
    // N:M: a number stored is multiplied by what a permutation takes from the 16 inputs of its entry.
    // CHECK: func.call @o3k_f32_nm_9x16_d8_p2_s64_u1
    %g = "o3.matmul_sparse"(%a, %halves, %starts2, %places17) {encoding = unit}
        : (tensor<9x64xf32>, tensor<3x2x4x16xf32>, tensor<6xi32>, tensor<3x17xi32>) -> tensor<9x17xf32>
    return %r, %p, %s, %m, %g : tensor<1x3x7x7x16xf32>, tensor<9x17xf32>, tensor<1x8x7x7xf32>, tensor<41x17xf32>, tensor<9x17xf32>
  }
}

// CHECK: func.func private @o3k_f32_sparse_7x16_d16_s16_u4_a[[HASH]](
// CHECK: arith.maximumf

// CHECK: func.func private @o3k_f32_nm_9x16_d8_p2_s64_u1(
// CHECK: %[[PLACES:.*]] = arith.shrui %{{.*}} : vector<16xi32>
// CHECK: %[[CHOSEN:.*]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%{{.*}}, %[[PLACES]])
// CHECK: vector.fma %[[CHOSEN]]
