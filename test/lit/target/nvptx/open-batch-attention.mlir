// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit loops -o - | FileCheck %s
// Attention whose batch is known only at run time, and whose tensor maps have no dimension left for it, as two others than
// the batch are walked: warpgroups are refused, and warps take it.
//
// CHECK: llvm.call @o3rt_gpu_launch{{.*}}family = "attention_mma"
// CHECK: llvm.func @o3k_f16_attention_{{.*}}_each_
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x2x3x128x64xf32>, o3.dims = ["N","","","",""]}) -> (!o3.value {o3.name = "y"}) {
    %pt = "o3.node"(%x) {op = "Transpose", domain = "", opset = 17 : i64, name = "pt", outputs = ["pt"], attrs = {perm = array<i64: 0, 1, 2, 4, 3>}} : (!o3.value) -> !o3.value
    %sc = "o3.node"(%x, %pt) {op = "MatMul", domain = "", opset = 17 : i64, name = "sc", outputs = ["sc"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %sm = "o3.node"(%sc) {op = "Softmax", domain = "", opset = 17 : i64, name = "sm", outputs = ["sm"], attrs = {axis = -1 : i64}} : (!o3.value) -> !o3.value
    %y = "o3.node"(%sm, %x) {op = "MatMul", domain = "", opset = 17 : i64, name = "y", outputs = ["y"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
