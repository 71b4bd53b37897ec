// RUN: o3-opt --lower --fuse --level 2 --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// The mask is looked at before the products of a block.
//
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: %[[SEES:.*]] = func.call @o3k_mask_sees
// CHECK: %[[COUNTS:.*]] = func.call @o3k_f32_mask_counts
// CHECK: %[[WORK:.*]] = arith.ori %[[SEES]], %[[COUNTS]] : i1
// CHECK: scf.if %[[WORK]]
// CHECK: func.call @o3k_f32_gemm_block
// CHECK: } else {
// CHECK: func.call @o3k_f32_softmax_clear
// CHECK: func.call @o3k_f32_softmax_end

func.func @main(%q: tensor<2x60x16xf32>, %k: tensor<2x16x300xf32>, %v: tensor<2x300x24xf32>, %m: tensor<60x300xi1>) -> tensor<2x60x24xf32> {
  %low = "o3.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %s = "o3.matmul"(%q, %k) : (tensor<2x60x16xf32>, tensor<2x16x300xf32>) -> tensor<2x60x300xf32>
  %a = "o3.select"(%m, %s, %low) : (tensor<60x300xi1>, tensor<2x60x300xf32>, tensor<f32>) -> tensor<2x60x300xf32>
  %p = "o3.softmax"(%a) {axis = 2 : i64} : (tensor<2x60x300xf32>) -> tensor<2x60x300xf32>
  %y = "o3.matmul"(%p, %v) : (tensor<2x60x300xf32>, tensor<2x300x24xf32>) -> tensor<2x60x24xf32>
  return %y : tensor<2x60x24xf32>
}
