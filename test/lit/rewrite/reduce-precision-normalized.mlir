// RUN: o3c --model %s --target hopper --precision fp16 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper --precision fp16 -O3 --emit fuse -o - | FileCheck %s --check-prefix=FUSE
// What a normalization reads of a product is narrow in memory: the product's kernel gives it so, and the rows' kernel
// widens it. A result of the model that else is only moved is not made narrow and wide again.
//
// CHECK-LABEL: func.func @main
// CHECK: "o3.matmul"({{.*}} -> tensor<64x64xf16>
// CHECK: %[[S:.*]] = "o3.add"({{.*}} -> tensor<64x64xf32>
// CHECK: %[[H:.*]] = "o3.cast"(%[[S]]) {{.*}} -> tensor<64x64xf16>
// CHECK: %[[W:.*]] = "o3.cast"(%[[H]]) {{.*}} -> tensor<64x64xf32>
// CHECK: %[[N:.*]] = "o3.layer_norm"(%[[W]],
// CHECK: "o3.slice"(%[[N]]) {{.*}} -> tensor<1x64xf32>
// CHECK: return %[[N]],
//
// FUSE: call @k{{.*}}contraction{{.*}} -> tensor<64x64xf16>
// FUSE: call @k{{.*}}rows{{.*}} : (tensor<64x64xf16>, {{.*}} -> tensor<64x64xf32>
func.func @main(%x: tensor<64x64xf32>, %g: tensor<64xf32>, %b: tensor<64xf32>) -> (tensor<64x64xf32>, tensor<1x64xf32>) {
  %w = "o3.constant"() {value = dense<0.5> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
  %p = "o3.matmul"(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = "o3.add"(%p, %x) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %n = "o3.layer_norm"(%s, %g, %b) {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
  %f = "o3.slice"(%n) {axes = array<i64: 0>, starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<64x64xf32>) -> tensor<1x64xf32>
  %q = "o3.matmul"(%f, %w) : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
  return %n, %q : tensor<64x64xf32>, tensor<1x64xf32>
}
