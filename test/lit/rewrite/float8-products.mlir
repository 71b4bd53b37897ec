// Products of dequantised 8-bit floats multiply these themselves where the card has kernels for it, B by columns and the
// scales behind the product; elsewhere in f16, which holds them exactly. Scales along what is summed stay where they are.
// RUN: o3-opt --float8-products --target hopper %s | FileCheck %s
// RUN: o3-opt --float8-products --target ampere %s | FileCheck --check-prefix=F16 %s
// RUN: o3-opt --float8-products --target x86-64-v3 %s | FileCheck --check-prefix=CPU %s

// CPU-NOT: acc = f32
// CPU-COUNT-4: "o3.matmul"
module {
  // CHECK: o3.choices = {{.*}}8-bit floats are multiplied as f16: the card has no FNUZ formats
  // CHECK-LABEL: func.func @main
  // F16-LABEL: func.func @main
  func.func @main(%q: tensor<2x64x32xf8E4M3FN>, %b: tensor<48x32xf8E4M3FN>, %s: tensor<f32>, %r: tensor<64x32xf8E4M3FNUZ>)
      -> (tensor<2x64x48xf32>, tensor<2x64x48xf16>, tensor<2x64x48xf32>, tensor<64x48xf32>) attributes {o3.symbols = [], o3.guards = []} {
    %w = "o3.constant"() {value = dense<1.0> : tensor<32x48xf8E4M3FN>} : () -> tensor<32x48xf8E4M3FN>
    %z = "o3.constant"() {value = dense<1.0> : tensor<32x48xf8E4M3FNUZ>} : () -> tensor<32x48xf8E4M3FNUZ>
    %c = "o3.constant"() {value = dense<2.0> : tensor<48xf32>} : () -> tensor<48xf32>
    %k = "o3.constant"() {value = dense<2.0> : tensor<32x1xf32>} : () -> tensor<32x1xf32>
    %qf = "o3.cast"(%q) {to = f32} : (tensor<2x64x32xf8E4M3FN>) -> tensor<2x64x32xf32>
    %a = "o3.mul"(%qf, %s) : (tensor<2x64x32xf32>, tensor<f32>) -> tensor<2x64x32xf32>
    %wf = "o3.cast"(%w) {to = f32} : (tensor<32x48xf8E4M3FN>) -> tensor<32x48xf32>
    %ws = "o3.mul"(%wf, %c) : (tensor<32x48xf32>, tensor<48xf32>) -> tensor<32x48xf32>
    // CHECK: %[[T:.*]] = "o3.transpose"(%{{.*}}) {perm = array<i64: 1, 0>} : (tensor<32x48xf8E4M3FN>) -> tensor<48x32xf8E4M3FN>
    // CHECK: %[[P:.*]] = "o3.matmul_columns"(%arg0, %[[T]]) {acc = f32} : (tensor<2x64x32xf8E4M3FN>, tensor<48x32xf8E4M3FN>) -> tensor<2x64x48xf32>
    // CHECK: %[[A:.*]] = "o3.mul"(%[[P]], %arg2)
    // CHECK: "o3.mul"(%[[A]], %{{.*}}) : (tensor<2x64x48xf32>, tensor<48xf32>)
    // F16: %[[L:.*]] = "o3.cast"(%arg0) {to = f16}
    // F16: %[[R:.*]] = "o3.cast"(%{{.*}}) {to = f16} : (tensor<32x48xf8E4M3FN>) -> tensor<32x48xf16>
    // F16: "o3.matmul"(%[[L]], %[[R]]) {acc = f32} : (tensor<2x64x32xf16>, tensor<32x48xf16>) -> tensor<2x64x48xf32>
    %y = "o3.matmul"(%a, %ws) : (tensor<2x64x32xf32>, tensor<32x48xf32>) -> tensor<2x64x48xf32>
    // CHECK: %[[H:.*]] = "o3.matmul_columns"(%arg0, %arg1) {acc = f32}
    // CHECK: "o3.cast"(%{{.*}}) {to = f16} : (tensor<2x64x48xf32>) -> tensor<2x64x48xf16>
    // F16: "o3.matmul"(%{{.*}}) {acc = f32} : (tensor<2x64x32xf16>, tensor<32x48xf16>)
    %ah = "o3.cast"(%a) {to = f16} : (tensor<2x64x32xf32>) -> tensor<2x64x32xf16>
    %bf = "o3.cast"(%b) {to = f32} : (tensor<48x32xf8E4M3FN>) -> tensor<48x32xf32>
    %bh = "o3.cast"(%bf) {to = f16} : (tensor<48x32xf32>) -> tensor<48x32xf16>
    %bt = "o3.transpose"(%bh) {perm = array<i64: 1, 0>} : (tensor<48x32xf16>) -> tensor<32x48xf16>
    %h = "o3.matmul"(%ah, %bt) : (tensor<2x64x32xf16>, tensor<32x48xf16>) -> tensor<2x64x48xf16>
    // CHECK: "o3.matmul"(%{{.*}}) : (tensor<2x64x32xf32>, tensor<32x48xf32>)
    %wk = "o3.mul"(%wf, %k) : (tensor<32x48xf32>, tensor<32x1xf32>) -> tensor<32x48xf32>
    %n = "o3.matmul"(%a, %wk) : (tensor<2x64x32xf32>, tensor<32x48xf32>) -> tensor<2x64x48xf32>
    // CHECK: "o3.matmul"(%{{.*}}) {acc = f32} : (tensor<64x32xf16>, tensor<32x48xf16>)
    %rf = "o3.cast"(%r) {to = f32} : (tensor<64x32xf8E4M3FNUZ>) -> tensor<64x32xf32>
    %zf = "o3.cast"(%z) {to = f32} : (tensor<32x48xf8E4M3FNUZ>) -> tensor<32x48xf32>
    %u = "o3.matmul"(%rf, %zf) : (tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32>
    return %y, %h, %n, %u : tensor<2x64x48xf32>, tensor<2x64x48xf16>, tensor<2x64x48xf32>, tensor<64x48xf32>
  }
}
