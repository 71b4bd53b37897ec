// RUN: o3c --model %s --target x86-64-v3 -O1 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper -O1 --emit rewrite -o - | FileCheck %s --check-prefix=GPU
// A model in halves is computed in f32 on a CPU: what ops hand each other is not rounded, what is moved included. A
// table is read as it is, a Cast of the model rounds, the place of the maximum is that among halves, and the model's
// inputs and results are halves. A card computes halves.
//
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<4x8xf16>
// CHECK: %[[ROWS:.*]] = "o3.gather"({{.*}} -> tensor<4x8xf16>
// CHECK: %[[P:.*]] = "o3.matmul"({{.*}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[T:.*]] = "o3.transpose"(%[[P]]) {{.*}} -> tensor<8x4xf32>
// CHECK: %[[E:.*]] = "o3.exp"(%[[T]]) {{.*}} -> tensor<8x4xf32>
// CHECK: %[[H:.*]] = "o3.cast"(%[[E]]) {{.*}} -> tensor<8x4xf16>
// CHECK: %[[R:.*]] = "o3.cast"(%[[E]]) {{.*}} -> tensor<8x4xbf16>
// CHECK: %[[B:.*]] = "o3.cast"(%[[R]]) {{.*}} -> tensor<8x4xf32>
// CHECK: "o3.neg"(%[[B]]) {{.*}} -> tensor<8x4xf32>
// CHECK: "o3.arg_reduce"(%[[H]])
// CHECK: return {{.*}} : tensor<8x4xf16>, tensor<4xi64>, tensor<8x4xbf16>
//
// GPU: "o3.matmul"({{.*}} -> tensor<4x8xf16>
func.func @main(%x: tensor<4x8xf16>, %i: tensor<4xi64>) -> (tensor<8x4xf16>, tensor<4xi64>, tensor<8x4xbf16>) {
  %w = "o3.constant"() {value = dense<0.5> : tensor<8x8xf16>} : () -> tensor<8x8xf16>
  %table = "o3.constant"() {value = dense<0.25> : tensor<16x8xf16>} : () -> tensor<16x8xf16>
  %g = "o3.gather"(%table, %i) {axis = 0 : i64} : (tensor<16x8xf16>, tensor<4xi64>) -> tensor<4x8xf16>
  %s = "o3.add"(%x, %g) : (tensor<4x8xf16>, tensor<4x8xf16>) -> tensor<4x8xf16>
  %p = "o3.matmul"(%s, %w) : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16>
  %t = "o3.transpose"(%p) {perm = array<i64: 1, 0>} : (tensor<4x8xf16>) -> tensor<8x4xf16>
  %e = "o3.exp"(%t) : (tensor<8x4xf16>) -> tensor<8x4xf16>
  %f = "o3.cast"(%e) {to = f32} : (tensor<8x4xf16>) -> tensor<8x4xf32>
  %r = "o3.cast"(%f) {rounds = true, to = bf16} : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %n = "o3.neg"(%r) : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
  %a = "o3.arg_reduce"(%e) {kind = "max", axis = 0 : i64, keepdims = false, select_last = false} : (tensor<8x4xf16>) -> tensor<4xi64>
  return %e, %a, %n : tensor<8x4xf16>, tensor<4xi64>, tensor<8x4xbf16>
}
