// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit loops -o - | FileCheck %s
// Places of elements are numbers of 32 bits. Rows that lie so far apart that twice the usual ones have no such places are not
// told to one kernel: a batch has places of its own, and where batches do not have them either, a kernel of one is launched
// for each. What a kernel is told at most is never a negative number.
//
// CHECK-NOT: arith.constant -{{[0-9]+}} : index
// CHECK: o3rt_gpu_launch{{.*}}family = "gemm"
// CHECK: llvm.func @o3k_f16_gemm_{{.*}}_each_
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x8x64xf32>, o3.dims = ["N", "", ""]},
                  %w: !o3.value {o3.name = "w", o3.type = tensor<64x16777224xf32>, o3.dims = ["", ""]})
      -> (!o3.value {o3.name = "y"}) {
    %y = "o3.node"(%x, %w) {op = "MatMul", domain = "", opset = 17 : i64, name = "product", outputs = ["y"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
