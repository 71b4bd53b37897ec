// RUN: o3c --model %s --target hopper -O2 -o %t.ll && FileCheck %s --input-file %t.ll
// Rounding between ops of half precision is left out of a kernel, but a Cast of the model rounds.
//
// CHECK: fptrunc float %{{.*}} to bfloat
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<4x17xf32>, o3.dims = ["", ""]}) -> (!o3.value {o3.name = "y"}) {
    %h = "o3.node"(%x) {op = "Cast", domain = "", opset = 17 : i64, name = "narrow", outputs = ["h"], attrs = {to = 16 : i64}} : (!o3.value) -> !o3.value
    %s = "o3.node"(%h) {op = "Cast", domain = "", opset = 17 : i64, name = "wide", outputs = ["s"], attrs = {to = 1 : i64}} : (!o3.value) -> !o3.value
    %y = "o3.node"(%s) {op = "LogSoftmax", domain = "", opset = 17 : i64, name = "rows", outputs = ["y"], attrs = {axis = 1 : i64}} : (!o3.value) -> !o3.value
    return %y : !o3.value
  }
}
