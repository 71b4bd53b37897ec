// RUN: o3c --model %s --target hopper --precision fp16 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper --precision bf16 --emit rewrite -o - | FileCheck %s
// Angles keep their bits, with the product of positions that makes them; a mask of lowest floats keeps its range, and
// read twice is not stored narrow. The product of data is narrow, and so is what makes it.
//
// CHECK-LABEL: func.func @main
// CHECK: "o3.matmul"({{.*}} : (tensor<5x1xf32>, tensor<1x4xf32>) -> tensor<5x4xf32>
// CHECK: %[[T:.*]] = "o3.transpose"({{.*}} : (tensor<5x4xf32>) -> tensor<4x5xf32>
// CHECK-DAG: "o3.sin"(%[[T]])
// CHECK-DAG: "o3.cos"(%[[T]])
// CHECK: %[[M:.*]] = "o3.select"({{.*}} -> tensor<4x5xf32>
// CHECK-NOT: (%[[M]]) {{.*}}16>
// CHECK: "o3.matmul"({{.*}}16>, {{.*}}16>) -> tensor<4x4x{{b?}}f16>
// CHECK: return
func.func @main(%p: tensor<5x1xi64>, %x: tensor<4x5xf32>, %k: tensor<4x5xi1>) -> (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x4xf32>) {
  %f = "o3.constant"() {value = dense<[[1.0, 0.5, 0.25, 0.1]]> : tensor<1x4xf32>} : () -> tensor<1x4xf32>
  %low = "o3.constant"() {value = dense<-3.40282347E+38> : tensor<4x5xf32>} : () -> tensor<4x5xf32>
  %zero = "o3.constant"() {value = dense<0.0> : tensor<4x5xf32>} : () -> tensor<4x5xf32>
  %c = "o3.cast"(%p) {to = f32} : (tensor<5x1xi64>) -> tensor<5x1xf32>
  %a = "o3.matmul"(%c, %f) : (tensor<5x1xf32>, tensor<1x4xf32>) -> tensor<5x4xf32>
  %t = "o3.transpose"(%a) {perm = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %s = "o3.sin"(%t) : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %o = "o3.cos"(%t) : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %m = "o3.select"(%k, %zero, %low) : (tensor<4x5xi1>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %u = "o3.add"(%s, %m) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %v = "o3.add"(%o, %m) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  %g = "o3.transpose"(%x) {perm = array<i64: 1, 0>} : (tensor<4x5xf32>) -> tensor<5x4xf32>
  %y = "o3.matmul"(%x, %g) : (tensor<4x5xf32>, tensor<5x4xf32>) -> tensor<4x4xf32>
  return %u, %v, %y : tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x4xf32>
}
