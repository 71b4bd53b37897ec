// RUN: o3c --model %s --target turing -O2 --explain -o %t.ptx 2>&1 | FileCheck %s
// Three softmaxes over channels that come first have more ops on buffers, where sums start at what another op writes,
// than a kernel of columns has: the fuse stage makes two of them, not one that is left to a generic kernel. Two places
// of shared memory serve all reductions of a kernel.
// A vector that is walked in two ways is loaded twice by a kernel of columns; those of rows leave it to a generic one.
//
// CHECK: launches
// CHECK-NEXT: columns: block 1024, chunks 8, cluster 1, lanes 32, parts 32, shared 32768, turns 1, vector 4
// CHECK-NEXT: columns: block 1024, chunks 8, cluster 1, lanes 32, parts 32, shared 16384, turns 1, vector 4
// CHECK-NEXT: columns:
// CHECK-NEXT: generic:
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 13 : i64}} {
  func.func @main(%v0: !o3.value {o3.name = "x", o3.type = tensor<1x256x32x64xf32>, o3.dims = ["","","",""]}, %x: !o3.value {o3.name = "v", o3.type = tensor<96xf32>, o3.dims = [""]})
      -> (!o3.value {o3.name = "y"}, !o3.value {o3.name = "c"}, !o3.value {o3.name = "r"}) {
    %v1 = "o3.node"(%v0) {op = "Softmax", domain = "", opset = 13 : i64, name = "s0", outputs = ["v1"], attrs = {axis = 1 : i64}} : (!o3.value) -> !o3.value
    %v2 = "o3.node"(%v1) {op = "Softmax", domain = "", opset = 13 : i64, name = "s1", outputs = ["v2"], attrs = {axis = 1 : i64}} : (!o3.value) -> !o3.value
    %v3 = "o3.node"(%v2) {op = "Softmax", domain = "", opset = 13 : i64, name = "s2", outputs = ["v3"], attrs = {axis = 1 : i64}} : (!o3.value) -> !o3.value
    %s = "o3.node"(%x) {op = "Unsqueeze", domain = "", opset = 11 : i64, name = "s", outputs = ["s"], attrs = {axes = array<i64: 1>}} : (!o3.value) -> !o3.value
    %t = "o3.node"(%x) {op = "Unsqueeze", domain = "", opset = 11 : i64, name = "t", outputs = ["t"], attrs = {axes = array<i64: 0>}} : (!o3.value) -> !o3.value
    %m = "o3.node"(%s, %t) {op = "Sub", domain = "", opset = 11 : i64, name = "mul", outputs = ["m"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %c = "o3.node"(%m) {op = "Softmax", domain = "", opset = 13 : i64, name = "columns", outputs = ["c"], attrs = {axis = 0 : i64}} : (!o3.value) -> !o3.value
    %n = "o3.node"(%t, %s) {op = "Sub", domain = "", opset = 11 : i64, name = "mul2", outputs = ["n"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    %r = "o3.node"(%n) {op = "Softmax", domain = "", opset = 13 : i64, name = "rows", outputs = ["r"], attrs = {axis = 1 : i64}} : (!o3.value) -> !o3.value
    return %v3, %c, %r : !o3.value, !o3.value, !o3.value
  }
}
