// RUN: o3c --model %s --target ampere --precision fp16 -O2 --emit loops -o - | FileCheck %s
// RUN: sed -e 's/\["s"\], attrs = {value = dense<\[0\]>/["s"], attrs = {value = dense<[1]>/' %s >%t.late.mlir
// RUN: o3c --model %t.late.mlir --target ampere --precision fp16 -O2 --emit loops -o - | FileCheck %s --check-prefix=APART
// RUN: sed -e 's/tensor<?x/tensor<?x?x/' -e 's/"N", /"N", "L", /' -e 's/0, 2, 1>/0, 1, 3, 2>/' -e 's/\["a"\], attrs = {value = dense<\[0\]>/["a"], attrs = {value = dense<[1]>/' %s >%t.second.mlir
// RUN: o3c --model %t.second.mlir --target ampere --precision fp16 -O2 --emit loops -o - | FileCheck %s --check-prefix=APART
// Attention on a part of what has batches known only at run time: where it begins with the first, batch b of the part is
// batch b of the whole. Where it begins later, or is a part of a second open dimension, it is not, and no kernel is made
// of the attention: the fuse stage knows.
//
// CHECK: family = "attention_mma"
// APART-NOT: family = "attention
// APART: family = "rows"
// APART-NOT: family = "attention
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x32x64xf32>, o3.dims = ["N", "", ""]}) -> (!o3.value {o3.name = "y"}) {
    %s = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "s", outputs = ["s"], attrs = {value = dense<[0]> : tensor<1xi64>}} : () -> !o3.value
    %e = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "e", outputs = ["e"], attrs = {value = dense<[-1]> : tensor<1xi64>}} : () -> !o3.value
    %a = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "a", outputs = ["a"], attrs = {value = dense<[0]> : tensor<1xi64>}} : () -> !o3.value
    %p = "o3.node"(%x, %s, %e, %a) {op = "Slice", domain = "", opset = 17 : i64, name = "p", outputs = ["p"], attrs = {}} : (!o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    %pt = "o3.node"(%p) {op = "Transpose", domain = "", opset = 17 : i64, name = "pt", outputs = ["pt"], attrs = {perm = array<i64: 0, 2, 1>}} : (!o3.value) -> !o3.value
    %sc = "o3.node"(%p, %pt) {op = "MatMul", domain = "", opset = 17 : i64, name = "sc", outputs = ["sc"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %sm = "o3.node"(%sc) {op = "Softmax", domain = "", opset = 17 : i64, name = "sm", outputs = ["sm"], attrs = {axis = -1 : i64}} : (!o3.value) -> !o3.value
    %y = "o3.node"(%sm, %p) {op = "MatMul", domain = "", opset = 17 : i64, name = "y", outputs = ["y"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
