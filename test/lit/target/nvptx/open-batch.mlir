// RUN: o3c --model %s --target ampere -O2 --emit loops -o - | FileCheck %s --check-prefixes=CHECK,WARPS
// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit loops -o - | FileCheck %s --check-prefixes=CHECK,TENSOR
// A convolution whose number of images is known only at run time is the kernel of one image: the launch has its blocks for
// each, and they begin where their image does in what differs from image to image, not in the weights. Tensor maps get the
// number of images.
//
// CHECK-LABEL: func.func @main
// CHECK: arith.divui
// CHECK: llvm.call @o3rt_gpu_launch{{.*}}family = "{{mma|gemm}}"
// CHECK: llvm.func @o3k_{{.*}}conv_{{.*}}_each_{{[1-9a-f][0-9a-f]*}}_0_
// CHECK: %[[NUMBER:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[BATCH:.*]] = llvm.udiv %[[NUMBER]]
// CHECK: llvm.urem %[[NUMBER]]
// WARPS: %[[WIDE:.*]] = llvm.zext %[[BATCH]]
// WARPS: llvm.mul %[[WIDE]]
// TENSOR: nvvm.cp.async.bulk.tensor.shared.cluster.global
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x32x14x14xf32>, o3.dims = ["N", "", "", ""]}) -> (!o3.value {o3.name = "y"}) {
    %w = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "w", outputs = ["w"], attrs = {value = dense<0.5> : tensor<64x32x3x3xf32>}} : () -> !o3.value
    %y = "o3.node"(%x, %w) {op = "Conv", domain = "", opset = 17 : i64, name = "conv", outputs = ["y"], attrs = {pads = array<i64: 1, 1, 1, 1>}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
