// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit rewrite -o - 2>/dev/null | FileCheck %s
// RUN: o3c --model %s --target hopper -O2 --emit rewrite -o - | FileCheck %s --check-prefix=KEPT
// RUN: o3c --model %s --target hopper --precision tf32 -O2 --emit rewrite -o - | FileCheck %s --check-prefix=KEPT
// RUN: o3c --model %s --target ampere --precision fp16 -O2 --emit rewrite -o - 2>/dev/null | FileCheck %s
// Queries, keys and values of one attention that come of one value are parts of one product. The third attention's
// values come of another value: three products stay.

// KEPT-NOT: o3.slice
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<2x7x32xf32>, %z: tensor<2x7x32xf32>) -> (tensor<2x2x7x64xf32>, tensor<2x2x7x64xf32>, tensor<2x2x7x64xf32>) attributes {o3.symbols = [], o3.guards = []} {
    %wq = "o3.constant"() {value = dense<1.0> : tensor<32x128xf32>} : () -> tensor<32x128xf32>
    %wk = "o3.constant"() {value = dense<2.0> : tensor<32x128xf32>} : () -> tensor<32x128xf32>
    %wv = "o3.constant"() {value = dense<4.0> : tensor<32x128xf32>} : () -> tensor<32x128xf32>
    %wo = "o3.constant"() {value = dense<5.0> : tensor<32x128xf32>} : () -> tensor<32x128xf32>
    %w6 = "o3.constant"() {value = dense<6.0> : tensor<32x128xf32>} : () -> tensor<32x128xf32>
    %w7 = "o3.constant"() {value = dense<7.0> : tensor<32x128xf32>} : () -> tensor<32x128xf32>
    %b = "o3.constant"() {value = dense<3.0> : tensor<128xf32>} : () -> tensor<128xf32>
    %scale = "o3.constant"() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    // CHECK: %[[Y:.*]] = "o3.matmul"({{.*}} (tensor<2x7x32xf16>, tensor<32x384xf16>) -> tensor<2x7x384xf16>
    // CHECK: %[[S:.*]] = "o3.add"({{.*}} (tensor<384xf32>, tensor<2x7x384xf32>)
    // CHECK: %[[C:.*]] = "o3.cast"(%[[S]])
    // CHECK: %[[H:.*]] = "o3.reshape"(%[[C]]) {{.*}} -> tensor<2x7x6x64xf16>
    // CHECK: %[[Q:.*]] = "o3.slice"(%[[H]]) {{.*}} -> tensor<2x7x2x64xf16>
    // CHECK: %[[K:.*]] = "o3.slice"(%[[H]]) {{.*}} -> tensor<2x7x2x64xf16>
    // CHECK: %[[V:.*]] = "o3.slice"(%[[H]]) {{.*}} -> tensor<2x7x2x64xf16>
    // CHECK: "o3.transpose"(%[[V]]) {perm = array<i64: 0, 2, 1, 3>}
    %yq = "o3.matmul"(%x, %wq) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %aq = "o3.add"(%b, %yq) : (tensor<128xf32>, tensor<2x7x128xf32>) -> tensor<2x7x128xf32>
    %hq = "o3.reshape"(%aq) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %q = "o3.transpose"(%hq) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x7x64xf32>
    %yk = "o3.matmul"(%x, %wk) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %ak = "o3.add"(%yk, %b) : (tensor<2x7x128xf32>, tensor<128xf32>) -> tensor<2x7x128xf32>
    %hk = "o3.reshape"(%ak) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %k = "o3.transpose"(%hk) {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x64x7xf32>
    %s = "o3.matmul"(%q, %k) : (tensor<2x2x7x64xf32>, tensor<2x2x64x7xf32>) -> tensor<2x2x7x7xf32>
    %d = "o3.mul"(%s, %scale) : (tensor<2x2x7x7xf32>, tensor<f32>) -> tensor<2x2x7x7xf32>
    %p = "o3.softmax"(%d) {axis = 3 : i64} : (tensor<2x2x7x7xf32>) -> tensor<2x2x7x7xf32>
    %yv = "o3.matmul"(%x, %wv) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %av = "o3.add"(%yv, %b) : (tensor<2x7x128xf32>, tensor<128xf32>) -> tensor<2x7x128xf32>
    %hv = "o3.reshape"(%av) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %v = "o3.transpose"(%hv) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x7x64xf32>
    %y = "o3.matmul"(%p, %v) : (tensor<2x2x7x7xf32>, tensor<2x2x7x64xf32>) -> tensor<2x2x7x64xf32>

    // The second reads weights and the bias of the first: where they stand serves both.
    // CHECK-COUNT-3: "o3.slice"({{.*}} -> tensor<2x7x2x64xf16>
    %yq2 = "o3.matmul"(%z, %wq) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %aq2 = "o3.add"(%b, %yq2) : (tensor<128xf32>, tensor<2x7x128xf32>) -> tensor<2x7x128xf32>
    %hq2 = "o3.reshape"(%aq2) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %q2 = "o3.transpose"(%hq2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x7x64xf32>
    %yk2 = "o3.matmul"(%z, %wk) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %ak2 = "o3.add"(%b, %yk2) : (tensor<128xf32>, tensor<2x7x128xf32>) -> tensor<2x7x128xf32>
    %hk2 = "o3.reshape"(%ak2) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %k2 = "o3.transpose"(%hk2) {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x64x7xf32>
    %s2 = "o3.matmul"(%q2, %k2) : (tensor<2x2x7x64xf32>, tensor<2x2x64x7xf32>) -> tensor<2x2x7x7xf32>
    %p2 = "o3.softmax"(%s2) {axis = 3 : i64} : (tensor<2x2x7x7xf32>) -> tensor<2x2x7x7xf32>
    %yv2 = "o3.matmul"(%z, %wo) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %av2 = "o3.add"(%b, %yv2) : (tensor<128xf32>, tensor<2x7x128xf32>) -> tensor<2x7x128xf32>
    %hv2 = "o3.reshape"(%av2) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %v2 = "o3.transpose"(%hv2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x7x64xf32>
    %y2 = "o3.matmul"(%p2, %v2) : (tensor<2x2x7x7xf32>, tensor<2x2x7x64xf32>) -> tensor<2x2x7x64xf32>
    // CHECK-NOT: o3.slice
    %yq3 = "o3.matmul"(%z, %w6) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %aq3 = "o3.add"(%b, %yq3) : (tensor<128xf32>, tensor<2x7x128xf32>) -> tensor<2x7x128xf32>
    %hq3 = "o3.reshape"(%aq3) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %q3 = "o3.transpose"(%hq3) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x7x64xf32>
    %yk3 = "o3.matmul"(%z, %w7) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %ak3 = "o3.add"(%b, %yk3) : (tensor<128xf32>, tensor<2x7x128xf32>) -> tensor<2x7x128xf32>
    %hk3 = "o3.reshape"(%ak3) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %k3 = "o3.transpose"(%hk3) {perm = array<i64: 0, 2, 3, 1>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x64x7xf32>
    %s3 = "o3.matmul"(%q3, %k3) : (tensor<2x2x7x64xf32>, tensor<2x2x64x7xf32>) -> tensor<2x2x7x7xf32>
    %p3 = "o3.softmax"(%s3) {axis = 3 : i64} : (tensor<2x2x7x7xf32>) -> tensor<2x2x7x7xf32>
    %yv3 = "o3.matmul"(%x, %wo) : (tensor<2x7x32xf32>, tensor<32x128xf32>) -> tensor<2x7x128xf32>
    %av3 = "o3.add"(%b, %yv3) : (tensor<128xf32>, tensor<2x7x128xf32>) -> tensor<2x7x128xf32>
    %hv3 = "o3.reshape"(%av3) : (tensor<2x7x128xf32>) -> tensor<2x7x2x64xf32>
    %v3 = "o3.transpose"(%hv3) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x7x2x64xf32>) -> tensor<2x2x7x64xf32>
    %y3 = "o3.matmul"(%p3, %v3) : (tensor<2x2x7x7xf32>, tensor<2x2x7x64xf32>) -> tensor<2x2x7x64xf32>
    return %y, %y2, %y3 : tensor<2x2x7x64xf32>, tensor<2x2x7x64xf32>, tensor<2x2x7x64xf32>
  }
}
