// RUN: o3c --model %s --target ampere -O2 --emit loops -o - | FileCheck %s
// RUN: o3c --model %s --target hopper -O2 --emit loops -o - | FileCheck %s
// A product whose rows are known only at run time is a kernel of warps: the launch tells it how many there are, has blocks for
// as many, and fails where places of elements were no 32-bit numbers.
//
// CHECK-LABEL: func.func @main
// CHECK: %[[ROWS:.*]] = arith.divui
// CHECK: arith.cmpi ugt, %[[ROWS]]
// CHECK: o3rt_fail
// CHECK: %[[TILES:.*]] = arith.ceildivui %[[ROWS]]
// CHECK: llvm.call @o3rt_gpu_launch{{.*}}family = "mma"
// CHECK: llvm.func @o3k_f32_gemm_{{.*}}%arg2: !llvm.ptr<1>{{.*}}%arg3: i32
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x?x64xf32>, o3.dims = ["N", "S", ""]},
                  %w: !o3.value {o3.name = "w", o3.type = tensor<64x48xf32>, o3.dims = ["", ""]})
      -> (!o3.value {o3.name = "y"}) {
    %y = "o3.node"(%x, %w) {op = "MatMul", domain = "", opset = 17 : i64, name = "product", outputs = ["y"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
