// Constant matrices lie by columns for products of few rows on GPUs, and for all with tf32, which no card before sm_80 has.
// RUN: o3c --model %s --target hopper -O2 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper -O2 --precision tf32 --emit rewrite -o - | FileCheck --check-prefix=TF32 %s
// RUN: o3c --model %s --target x86-64-v3 -O2 --emit rewrite -o - | FileCheck --check-prefix=CPU %s
// RUN: o3c --model %s --target hopper -O2 --precision tf32 -o %t.ptx && FileCheck --check-prefix=PTX %s <%t.ptx
// RUN: o3-opt --weight-columns --fold-constants --target hopper --check-equal %s | FileCheck %s
// RUN: not o3c --model %s --target turing -O2 --precision tf32 -o %t.ptx 2>&1 | FileCheck --check-prefix=TURING %s

// CHECK: o3.constant{{.*}}tensor<8x4xf32>
// CHECK: o3.matmul_columns{{.*}}(tensor<2x4xf32>, tensor<8x4xf32>)
// CHECK: "o3.matmul"{{.*}}(tensor<64x8xf32>, tensor<8x16xf32>)
// CHECK-NOT: o3.transpose

// TF32: o3.matmul_columns{{.*}}(tensor<2x4xf32>, tensor<8x4xf32>)
// TF32: o3.matmul_columns{{.*}}(tensor<64x8xf32>, tensor<16x8xf32>)
// CPU-NOT: matmul_columns
// PTX: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k8.f32.tf32.tf32
// TURING: precision tf32: target 'turing' has no instructions for it, from sm_80 on there are
func.func @main(%x: tensor<2x4xf32>, %u: tensor<64x8xf32>) -> (tensor<2x8xf32>, tensor<64x16xf32>) {
  %w = "o3.constant"() {value = dense<[[-0.731, 0.695, 0.528, -0.490, -0.009, -0.101, 0.303, 0.577], [-0.812, -0.943, 0.672, -0.134, 0.525, -0.996, -0.109, 0.443], [-0.542, 0.891, 0.803, -0.939, -0.949, 0.083, 0.878, -0.238], [-0.567, -0.156, -0.942, -0.557, -0.124, -0.008, -0.534, -0.538]]> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %v = "o3.constant"() {value = dense<[[-0.562, -0.081, -0.420, -0.957, 0.675, 0.113, 0.285, -0.628, 0.985, 0.720, -0.758, -0.335, 0.443, 0.422, 0.873, -0.156], [0.660, 0.341, -0.393, 0.175, 0.765, 0.692, 0.011, 0.178, -0.931, -0.515, 0.595, -0.171, -0.654, 0.098, 0.406, 0.349], [-0.251, -0.122, 0.017, 0.557, 0.042, -0.213, -0.021, -0.941, -0.913, 0.407, 0.966, 0.186, -0.213, -0.659, 0.004, 0.964], [0.541, 0.079, 0.721, -0.536, 0.028, 0.905, 0.156, -0.082, -0.461, 0.096, 0.914, -0.989, 0.567, 0.641, 0.772, 0.481], [0.618, 0.037, 0.123, -0.148, -0.888, 0.740, 0.140, -0.600, 0.009, -0.030, -0.286, -0.308, 0.077, 0.247, 0.225, -0.084], [-0.944, -0.541, -0.646, 0.169, 0.722, 0.597, 0.594, 0.633, -0.489, 0.683, 0.346, -0.834, -0.967, -0.971, 0.511, -0.501], [-0.781, 0.250, -0.311, -0.861, -0.681, 0.055, -0.664, -0.454, 0.423, -0.091, -0.356, -0.052, -0.953, -0.227, -0.158, -0.624], [-0.782, 0.800, 0.020, -0.582, 0.211, 0.634, -0.958, -0.964, -0.707, 0.438, -0.680, 0.409, 0.356, 0.089, -0.559, 0.951]]> : tensor<8x16xf32>} : () -> tensor<8x16xf32>
  %y = "o3.matmul"(%x, %w) : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %z = "o3.matmul"(%u, %v) : (tensor<64x8xf32>, tensor<8x16xf32>) -> tensor<64x16xf32>
  return %y, %z : tensor<2x8xf32>, tensor<64x16xf32>
}
