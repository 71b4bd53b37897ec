// RUN: o3c --model %s --target ampere --precision fp16 -O2 -o %t.ll && FileCheck %s --input-file %t.ll
// A warp's product is assembly for all of its threads: LLVM is told, so that it moves none of them under a branch.
//
// CHECK: call {{.*}} asm "mma.sync.aligned.{{.*}} #[[TOGETHER:[0-9]+]]
// CHECK: attributes #[[TOGETHER]] = {{{.*}}convergent
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<96x64xf32>, o3.dims = ["", ""]},
                  %w: !o3.value {o3.name = "w", o3.type = tensor<64x48xf32>, o3.dims = ["", ""]})
      -> (!o3.value {o3.name = "y"}) {
    %y = "o3.node"(%x, %w) {op = "MatMul", domain = "", opset = 17 : i64, name = "product", outputs = ["y"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
