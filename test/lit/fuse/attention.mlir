// RUN: o3-opt --lower --fuse --level 2 %s | FileCheck %s
// RUN: o3-opt --lower --fuse --level 2 --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s --check-prefix=LOOPS
// Product, scale, mask, softmax and product are one kernel; probabilities that something else reads are not.
//
// CHECK-LABEL: func.func @main
// CHECK: call @k0_attention_
// CHECK: call @k1_contraction_
// CHECK: call @k3_rows_
// CHECK: call @k2_contraction_
// CHECK: func.func private @k0_attention_
// CHECK-SAME: o3.reasons = ["the product reads through its order of dimensions", "product", "elementwise on the scores", "greatest score of a row, so far", "within the row", "sum of a row, rescaled when the greatest score grows", "within the row: done to the product's result instead", "product, block by block with the probabilities"]
// CHECK: func.func private @k1_contraction_
// CHECK-SAME: no attention because of {{.*}}: another op reads the probabilities
//
// The scores are a tile on the stack: 64 queries at least, 128 keys.
// LOOPS-LABEL: func.func @main
// LOOPS: scf.parallel
// LOOPS: memref.alloca() {{.*}} : memref<1x1x64x128xf32>
// LOOPS: call @o3k_f32_softmax_begin
// LOOPS: scf.for
// LOOPS: call @o3k_f32_gemm_block
// LOOPS: vector.load
// LOOPS: arith.addf {{.*}} : vector<{{[0-9]+}}xf32>
// LOOPS: vector.maskedstore
// LOOPS: vector.reduction <maxnumf>
// LOOPS-NOT: call @o3k_f32_softmax_greatest
// LOOPS: call @o3k_f32_softmax_block
// LOOPS: scf.for
// LOOPS: call @o3k_f32_gemm_block
// LOOPS: call @o3k_f32_softmax_end

func.func @main(%q: tensor<2x3x60x16xf32>, %k: tensor<2x3x300x16xf32>, %v: tensor<2x3x300x24xf32>, %m: tensor<2x1x1x300xf32>, %w: tensor<2x3x16x300xf32>)
    -> (tensor<2x3x60x24xf32>, tensor<2x3x60x300xf32>, tensor<2x3x60x24xf32>) {
  %t = "o3.transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x300x16xf32>) -> tensor<2x3x16x300xf32>
  %s = "o3.matmul"(%q, %t) : (tensor<2x3x60x16xf32>, tensor<2x3x16x300xf32>) -> tensor<2x3x60x300xf32>
  %a = "o3.add"(%s, %m) : (tensor<2x3x60x300xf32>, tensor<2x1x1x300xf32>) -> tensor<2x3x60x300xf32>
  %p = "o3.softmax"(%a) {axis = 3 : i64} : (tensor<2x3x60x300xf32>) -> tensor<2x3x60x300xf32>
  %y = "o3.matmul"(%p, %v) : (tensor<2x3x60x300xf32>, tensor<2x3x300x24xf32>) -> tensor<2x3x60x24xf32>
  %s1 = "o3.matmul"(%q, %w) : (tensor<2x3x60x16xf32>, tensor<2x3x16x300xf32>) -> tensor<2x3x60x300xf32>
  %p1 = "o3.softmax"(%s1) {axis = 3 : i64} : (tensor<2x3x60x300xf32>) -> tensor<2x3x60x300xf32>
  %y1 = "o3.matmul"(%p1, %v) : (tensor<2x3x60x300xf32>, tensor<2x3x300x24xf32>) -> tensor<2x3x60x24xf32>
  return %y, %p1, %y1 : tensor<2x3x60x24xf32>, tensor<2x3x60x300xf32>, tensor<2x3x60x24xf32>
}
