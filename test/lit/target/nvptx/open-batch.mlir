// RUN: o3c --model %s --target ampere -O2 --emit loops -o - | FileCheck %s --check-prefixes=CHECK,WARPS
// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit loops -o - | FileCheck %s --check-prefixes=CHECK,TENSOR
// A convolution whose number of images is known only at run time. On warps it is the kernel of one image: the launch has its
// blocks for each, and they begin where their image does in what differs from image to image, not in the weights. On
// warpgroups it is a product that is told how many rows there are, as many as positions of all images, and its tensor maps
// have as many images and rows; its blocks go on from tile to tile.
//
// CHECK-LABEL: func.func @main
// CHECK: arith.divui
// TENSOR: arith.cmpi ugt
// TENSOR: o3rt_fail
// TENSOR: arith.minui
// CHECK: llvm.call @o3rt_gpu_launch{{.*}}family = "{{mma|gemm}}"
// WARPS: llvm.func @o3k_{{.*}}conv_{{.*}}_each_{{[1-9a-f][0-9a-f]*}}_0_
// WARPS: %[[NUMBER:.*]] = nvvm.read.ptx.sreg.ctaid.x
// WARPS: %[[BATCH:.*]] = llvm.udiv %[[NUMBER]]
// WARPS: llvm.urem %[[NUMBER]]
// WARPS: %[[WIDE:.*]] = llvm.zext %[[BATCH]]
// WARPS: llvm.mul %[[WIDE]]
// TENSOR: llvm.func @o3k_f16_conv_{{.*}}: i32
// TENSOR: nvvm.cp.async.bulk.tensor.shared.cluster.global
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x32x14x14xf32>, o3.dims = ["N", "", "", ""]}) -> (!o3.value {o3.name = "y"}) {
    %w = "o3.node"() {op = "Constant", domain = "", opset = 17 : i64, name = "w", outputs = ["w"], attrs = {value = dense<0.5> : tensor<64x32x3x3xf32>}} : () -> !o3.value
    %y = "o3.node"(%x, %w) {op = "Conv", domain = "", opset = 17 : i64, name = "conv", outputs = ["y"], attrs = {pads = array<i64: 1, 1, 1, 1>}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
