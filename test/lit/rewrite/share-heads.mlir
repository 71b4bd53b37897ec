// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit rewrite -o - 2>/dev/null | FileCheck %s
// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit fuse --explain -o %t.mlir 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: o3c --model %s -O2 --emit rewrite -o - | FileCheck %s --check-prefix=CPU
// RUN: sed 's/{axis = 3 : i64}/{axis = 3 : i64, log = true}/' %s > %t.log.mlir
// RUN: o3c --model %t.log.mlir --target hopper --precision fp16 -O2 --emit rewrite -o - 2>/dev/null | FileCheck %s --check-prefix=LOG
// Keys and values of two heads are repeated for six: instead, the products have a loop of heads and one of their
// members. Heads are split before and joined behind their transposes, which the kernel reads and writes through. A mask
// is not repeated for any target.
//
// CHECK-NOT: o3.broadcast
// CHECK-DAG: %[[Q:.*]] = "o3.transpose"({{.*}}) {perm = array<i64: 0, 2, 3, 1, 4>} : (tensor<2x20x2x3x64xf16>) -> tensor<2x2x3x20x64xf16>
// CHECK-DAG: %[[K:.*]] = "o3.transpose"({{.*}}) {perm = array<i64: 0, 1, 2, 4, 3>} : (tensor<2x2x1x30x64xf16>) -> tensor<2x2x1x64x30xf16>
// CHECK: "o3.matmul"(%[[Q]], %[[K]])
// CHECK: "o3.softmax"({{.*}}) {axis = 4 : i64} : (tensor<2x2x3x20x30xf32>)
// CHECK: "o3.matmul"({{.*}}) : (tensor<2x2x3x20x30xf16>, tensor<2x2x1x30x64xf16>) -> tensor<2x2x3x20x64xf16>
// CHECK: "o3.transpose"({{.*}}) {perm = array<i64: 0, 3, 1, 2, 4>}
// CHECK: "o3.reshape"({{.*}}) : (tensor<2x20x2x3x64xf16>) -> tensor<2x20x6x64xf16>
//
// A logarithm of a softmax is none.
// LOG: "o3.softmax"({{.*}}) {{.*}}log = true{{.*}} : (tensor<2x6x20x30xf32>)
//
// KERNELS: k0_attention
// KERNELS-NOT: movement
//
// CPU-COUNT-2: o3.broadcast
// CPU-NOT: o3.broadcast
func.func @main(%x: tensor<2x20x384xf32>, %k: tensor<2x2x30x64xf32>, %v: tensor<2x2x30x64xf32>, %m: tensor<2x1x1x30xf32>) -> tensor<2x20x6x64xf32> attributes {o3.symbols = [], o3.guards = []} {
  %c = "o3.constant"() {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %xh = "o3.reshape"(%x) : (tensor<2x20x384xf32>) -> tensor<2x20x6x64xf32>
  %q = "o3.transpose"(%xh) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x20x6x64xf32>) -> tensor<2x6x20x64xf32>
  %k1 = "o3.reshape"(%k) : (tensor<2x2x30x64xf32>) -> tensor<2x2x1x30x64xf32>
  %k2 = "o3.broadcast"(%k1) : (tensor<2x2x1x30x64xf32>) -> tensor<2x2x3x30x64xf32>
  %k3 = "o3.reshape"(%k2) : (tensor<2x2x3x30x64xf32>) -> tensor<2x6x30x64xf32>
  %t = "o3.transpose"(%k3) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x6x30x64xf32>) -> tensor<2x6x64x30xf32>
  %s = "o3.matmul"(%q, %t) : (tensor<2x6x20x64xf32>, tensor<2x6x64x30xf32>) -> tensor<2x6x20x30xf32>
  %d = "o3.div"(%s, %c) : (tensor<2x6x20x30xf32>, tensor<f32>) -> tensor<2x6x20x30xf32>
  %w = "o3.broadcast"(%m) : (tensor<2x1x1x30xf32>) -> tensor<2x6x20x30xf32>
  %a = "o3.add"(%d, %w) : (tensor<2x6x20x30xf32>, tensor<2x6x20x30xf32>) -> tensor<2x6x20x30xf32>
  %p = "o3.softmax"(%a) {axis = 3 : i64} : (tensor<2x6x20x30xf32>) -> tensor<2x6x20x30xf32>
  %v1 = "o3.reshape"(%v) : (tensor<2x2x30x64xf32>) -> tensor<2x2x1x30x64xf32>
  %v2 = "o3.broadcast"(%v1) : (tensor<2x2x1x30x64xf32>) -> tensor<2x2x3x30x64xf32>
  %v3 = "o3.reshape"(%v2) : (tensor<2x2x3x30x64xf32>) -> tensor<2x6x30x64xf32>
  %y = "o3.matmul"(%p, %v3) : (tensor<2x6x20x30xf32>, tensor<2x6x30x64xf32>) -> tensor<2x6x20x64xf32>
  %z = "o3.transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x6x20x64xf32>) -> tensor<2x20x6x64xf32>
  return %z : tensor<2x20x6x64xf32>
}
