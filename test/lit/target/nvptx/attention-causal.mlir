// RUN: o3c --model %s --target hopper -O2 --precision fp16 --emit fuse --explain -o %t.mlir 2>&1 | FileCheck %s
// RUN: o3c --model %s --target hopper -O2 --precision fp16 -o %t.ptx && FileCheck --check-prefix=PTX %s <%t.ptx
// RUN: sed -e 's/o3.less_equal/o3.less/' %s >%t.above.mlir
// RUN: o3c --model %t.above.mlir --target hopper -O2 --precision fp16 -o %t.above.ptx && FileCheck --check-prefix=ABOVE %s <%t.above.ptx
// A mask that shows what is not above the diagonal is known as such; any other one is read.
//
// CHECK: k0_attention
// PTX: .entry o3k_f16_attention_{{.*}}_causal_
// ABOVE: .entry o3k_f16_attention_{{[0-9x]+}}__sm80_{{[0-9a-f]+}}(
func.func @main(%q: tensor<2x3x40x64xf32>, %k: tensor<2x3x40x64xf32>, %v: tensor<2x3x40x64xf32>) -> tensor<2x3x40x64xf32> {
  %r = "o3.iota"() {axis = 0 : i64} : () -> tensor<40x1xi64>
  %c = "o3.iota"() {axis = 1 : i64} : () -> tensor<1x40xi64>
  %m = "o3.less_equal"(%c, %r) : (tensor<1x40xi64>, tensor<40x1xi64>) -> tensor<40x40xi1>
  %l = "o3.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %t = "o3.transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x40x64xf32>) -> tensor<2x3x64x40xf32>
  %s = "o3.matmul"(%q, %t) : (tensor<2x3x40x64xf32>, tensor<2x3x64x40xf32>) -> tensor<2x3x40x40xf32>
  %a = "o3.select"(%m, %s, %l) : (tensor<40x40xi1>, tensor<2x3x40x40xf32>, tensor<f32>) -> tensor<2x3x40x40xf32>
  %p = "o3.softmax"(%a) {axis = 3 : i64} : (tensor<2x3x40x40xf32>) -> tensor<2x3x40x40xf32>
  %y = "o3.matmul"(%p, %v) : (tensor<2x3x40x40xf32>, tensor<2x3x40x64xf32>) -> tensor<2x3x40x64xf32>
  return %y : tensor<2x3x40x64xf32>
}
