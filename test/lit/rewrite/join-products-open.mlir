// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit rewrite -o - 2>/dev/null | FileCheck %s
// RUN: o3c --model %s --target ampere --precision fp16 -O2 --emit loops -o - 2>/dev/null | FileCheck %s --check-prefix=KERNELS
// RUN: sed 's/dense<.0, 7, 2, 64.>/dense<[-1, 7, 3, 64]>/' %s > %t.mlir
// RUN: o3c --model %t.mlir --target hopper --precision fp16 -O2 --emit rewrite -o - 2>/dev/null | FileCheck %s --check-prefix=OTHER
// Queries, keys and values are parts of one product where the batch is known only at run time, too, and attention reads its
// part of each batch. Heads of another batch than the product's are no parts of it.
//
// CHECK-LABEL: func.func @main
// CHECK: "o3.matmul"({{.*}} (tensor<?x7x32xf16>, tensor<32x384xf16>) -> tensor<?x7x384xf16>
// CHECK: %[[H:.*]] = "o3.reshape"({{.*}} -> tensor<?x7x6x64xf16>
// CHECK: "o3.slice"(%[[H]]) {{.*}} -> tensor<?x7x2x64xf16>
// CHECK-NOT: tensor<32x128xf16>
// KERNELS: family = "mma"
// KERNELS: family = "attention_mma"
// KERNELS-NOT: family = "mma"
// OTHER-LABEL: func.func @main
// OTHER-COUNT-3: tensor<32x128xf16>) -> tensor<?x7x128xf16>
// OTHER-NOT: o3.slice
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x7x32xf32>, o3.dims = ["N", "", ""]}) -> (!o3.value {o3.name = "mixed"}) {
    %shape = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "shape", outputs = ["shape"], attrs = {value = dense<[0, 7, 2, 64]> : tensor<4xi64>}} : () -> !o3.value
    %scale = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "scale", outputs = ["scale"], attrs = {value = dense<1.250000e-01> : tensor<f32>}} : () -> !o3.value
    %bias = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "bias", outputs = ["bias"], attrs = {value = dense<3.0> : tensor<128xf32>}} : () -> !o3.value
    %wq = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "wq", outputs = ["wq"], attrs = {value = dense<1.0> : tensor<32x128xf32>}} : () -> !o3.value
    %yq = "o3.node"(%x, %wq) {op = "MatMul", domain = "", opset = 17 : i64, name = "yq", outputs = ["yq"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %aq = "o3.node"(%yq, %bias) {op = "Add", domain = "", opset = 17 : i64, name = "aq", outputs = ["aq"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %hq = "o3.node"(%aq, %shape) {op = "Reshape", domain = "", opset = 17 : i64, name = "hq", outputs = ["hq"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %q = "o3.node"(%hq) {op = "Transpose", domain = "", opset = 17 : i64, name = "q", outputs = ["q"], attrs = {perm = array<i64: 0, 2, 1, 3>}} : (!o3.value) -> !o3.value
    %wk = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "wk", outputs = ["wk"], attrs = {value = dense<2.0> : tensor<32x128xf32>}} : () -> !o3.value
    %yk = "o3.node"(%x, %wk) {op = "MatMul", domain = "", opset = 17 : i64, name = "yk", outputs = ["yk"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %ak = "o3.node"(%yk, %bias) {op = "Add", domain = "", opset = 17 : i64, name = "ak", outputs = ["ak"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %hk = "o3.node"(%ak, %shape) {op = "Reshape", domain = "", opset = 17 : i64, name = "hk", outputs = ["hk"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %k = "o3.node"(%hk) {op = "Transpose", domain = "", opset = 17 : i64, name = "k", outputs = ["k"], attrs = {perm = array<i64: 0, 2, 3, 1>}} : (!o3.value) -> !o3.value
    %wv = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "wv", outputs = ["wv"], attrs = {value = dense<3.0> : tensor<32x128xf32>}} : () -> !o3.value
    %yv = "o3.node"(%x, %wv) {op = "MatMul", domain = "", opset = 17 : i64, name = "yv", outputs = ["yv"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %av = "o3.node"(%yv, %bias) {op = "Add", domain = "", opset = 17 : i64, name = "av", outputs = ["av"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %hv = "o3.node"(%av, %shape) {op = "Reshape", domain = "", opset = 17 : i64, name = "hv", outputs = ["hv"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %v = "o3.node"(%hv) {op = "Transpose", domain = "", opset = 17 : i64, name = "v", outputs = ["v"], attrs = {perm = array<i64: 0, 2, 1, 3>}} : (!o3.value) -> !o3.value
    %products = "o3.node"(%q, %k) {op = "MatMul", domain = "", opset = 17 : i64, name = "products", outputs = ["products"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %scores = "o3.node"(%products, %scale) {op = "Mul", domain = "", opset = 17 : i64, name = "scores", outputs = ["scores"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %weights = "o3.node"(%scores) {op = "Softmax", domain = "", opset = 17 : i64, name = "weights", outputs = ["weights"], attrs = {axis = -1 : i64}} : (!o3.value) -> !o3.value
    %mixed = "o3.node"(%weights, %v) {op = "MatMul", domain = "", opset = 17 : i64, name = "mixed", outputs = ["mixed"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %mixed : !o3.value
  }
}
