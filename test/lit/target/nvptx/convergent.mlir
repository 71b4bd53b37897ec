// RUN: o3c --model %s --target ampere --precision fp16 -O2 -o %t.ll && FileCheck %s --input-file %t.ll
// RUN: o3c --model %s --target ampere --precision fp16 -O2 --emit loops -o %t.mlir
// RUN: sed s/mma.sync.aligned/mma.aligned/ %t.mlir > %t.aligned.mlir
// RUN: o3c --model %t.aligned.mlir --start-from llvm --target ampere --precision fp16 -O2 -o %t.aligned.ll
// RUN: FileCheck %s --input-file %t.aligned.ll --check-prefix=ALIGNED
// RUN: sed s/mma.sync.aligned/mma.alone/ %t.mlir > %t.alone.mlir
// RUN: o3c --model %t.alone.mlir --start-from llvm --target ampere --precision fp16 -O2 -o %t.alone.ll
// RUN: FileCheck %s --input-file %t.alone.ll --check-prefix=ALONE
// A warp's product is assembly for all of its threads: LLVM is told, so that it moves none of them under a branch. What tells
// is either part of an instruction's name.
//
// CHECK: call {{.*}} asm "mma.sync.aligned.{{.*}} #[[TOGETHER:[0-9]+]]
// CHECK: attributes #[[TOGETHER]] = {{{.*}}convergent
// ALIGNED: call {{.*}} asm "mma.aligned.{{.*}} #[[TOGETHER:[0-9]+]]
// ALIGNED: attributes #[[TOGETHER]] = {{{.*}}convergent
// ALONE: call {{.*}} asm "mma.alone.{{.*}} #[[ALONE:[0-9]+]]
// ALONE: attributes #[[ALONE]] = { nounwind }
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<96x64xf32>, o3.dims = ["", ""]},
                  %w: !o3.value {o3.name = "w", o3.type = tensor<64x48xf32>, o3.dims = ["", ""]})
      -> (!o3.value {o3.name = "y"}) {
    %y = "o3.node"(%x, %w) {op = "MatMul", domain = "", opset = 17 : i64, name = "product", outputs = ["y"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
