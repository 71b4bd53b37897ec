// RUN: o3c --model %s --target hopper -O2 --precision fp16 --emit fuse --explain -o %t.mlir 2>&1 | FileCheck %s
// RUN: sed -e 's/tensor<2x/tensor<70x/g' %s >%t.many.mlir
// RUN: o3c --model %t.many.mlir --target hopper -O2 --precision fp16 -o %t.ptx && FileCheck --check-prefix=PTX %s <%t.ptx
// RUN: o3c --model %s --target hopper -O2 --precision fp16 -o %t.ptx && FileCheck --check-prefix=FEW %s <%t.ptx
// RUN: o3c --model %s --target ampere -O2 --precision fp16 -o %t.ptx && FileCheck --check-prefix=AMPERE %s <%t.ptx
// RUN: o3c --model %s --target turing -O2 --precision fp16 -o %t.ptx && FileCheck --check-prefix=TURING %s <%t.ptx
// RUN: o3c --model %s --target volta -O2 --precision fp16 -o %t.ptx && FileCheck --check-prefix=VOLTA %s <%t.ptx
// RUN: sed -e 's/x64xf32/x20xf32/g' -e 's/x64x/x20x/g' %s >%t.narrow.mlir
// RUN: o3c --model %t.narrow.mlir --target hopper -O2 --precision fp16 -o %t.ptx && FileCheck --check-prefix=NARROW %s <%t.ptx
// RUN: sed -e 's/x64xf32/x264xf32/g' -e 's/x64x/x264x/g' %s >%t.wide.mlir
// RUN: o3c --model %t.wide.mlir --target hopper -O2 --precision fp16 --emit fuse --explain -o %t.mlir 2>&1 | FileCheck --check-prefix=WIDE %s
// RUN: sed -e 's/o3.add"(%%d, %%m/o3.mul"(%%d, %%m/' %s >%t.product.mlir
// RUN: o3c --model %t.product.mlir --target hopper -O2 --precision fp16 --emit fuse --explain -o %t.mlir 2>&1 | FileCheck --check-prefix=PRODUCT %s
// Product, scale, mask, softmax and product are one kernel on warpgroups, which also rounds the probabilities and writes
// the result in the order of its readers. Anything else says why not.
//
// CHECK: k0_attention
// CHECK: elementwise on the scores
// CHECK: greatest score of a row, so far
// CHECK: sum of a row, rescaled when the greatest score grows
// CHECK: product, block by block with the probabilities
// CHECK-NEXT: how the result is stored
// CHECK-NEXT: how the result is stored
// CHECK-NEXT: (end)
// PTX: .entry o3k_f16_attention_128x128x64__sm90a_
// PTX: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// Few rows in all are for warps.
// FEW: .entry o3k_f16_attention_16x{{[0-9]+}}x64__sm80_
// AMPERE: .entry o3k_f16_attention_{{[0-9x]+}}__sm80_
// AMPERE: cp.async.cg.shared.global
// AMPERE: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// TURING: .entry o3k_f16_attention_{{[0-9x]+}}__sm75_
// TURING: mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
// VOLTA: .entry o3k_f16_attention_{{[0-9x]+}}__sm70_
// VOLTA: mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32
// Rows of 40 bytes are none that TMA takes.
// NARROW: .entry o3k_f16_attention_{{[0-9x]+}}__sm80_
// WIDE: no attention because of {{.*}}: a head is more than 256 wide
// PRODUCT: no attention because of {{.*}}: the scores are changed by more than a factor and a mask that is added
func.func @main(%q: tensor<2x3x20x64xf32>, %k: tensor<2x3x30x64xf32>, %v: tensor<2x3x30x64xf32>, %m: tensor<2x1x1x30xf32>) -> tensor<2x20x3x64xf32> {
  %c = "o3.constant"() {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %t = "o3.transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x30x64xf32>) -> tensor<2x3x64x30xf32>
  %s = "o3.matmul"(%q, %t) : (tensor<2x3x20x64xf32>, tensor<2x3x64x30xf32>) -> tensor<2x3x20x30xf32>
  %d = "o3.div"(%s, %c) : (tensor<2x3x20x30xf32>, tensor<f32>) -> tensor<2x3x20x30xf32>
  %a = "o3.add"(%d, %m) : (tensor<2x3x20x30xf32>, tensor<2x1x1x30xf32>) -> tensor<2x3x20x30xf32>
  %p = "o3.softmax"(%a) {axis = 3 : i64} : (tensor<2x3x20x30xf32>) -> tensor<2x3x20x30xf32>
  %y = "o3.matmul"(%p, %v) : (tensor<2x3x20x30xf32>, tensor<2x3x30x64xf32>) -> tensor<2x3x20x64xf32>
  %z = "o3.transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x3x20x64xf32>) -> tensor<2x20x3x64xf32>
  return %z : tensor<2x20x3x64xf32>
}
