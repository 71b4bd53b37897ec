// RUN: o3c --model %s --target hopper -O2 --precision fp16 --emit fuse --explain -o %t.mlir 2>&1 | FileCheck %s
// RUN: sed -e 's/1x3x1x30/3x1x1x30/g' %s >%t.same.mlir
// RUN: o3c --model %t.same.mlir --target hopper -O2 --precision fp16 --emit fuse --explain -o %t.mlir 2>&1 | FileCheck --check-prefix=SAME %s
// One tensor that is added twice: as the mask of each batch and as that of each head it has two sets of strides, of
// which a kernel has one.
//
// CHECK: no attention because of {{.*}}: the scores have a mask that is read in two ways
// SAME: k0_attention
func.func @main(%q: tensor<3x3x20x64xf32>, %k: tensor<3x3x30x64xf32>, %v: tensor<3x3x30x64xf32>, %n: tensor<3x30xf32>) -> tensor<3x3x20x64xf32> {
  %m = "o3.reshape"(%n) : (tensor<3x30xf32>) -> tensor<3x1x1x30xf32>
  %h = "o3.reshape"(%n) : (tensor<3x30xf32>) -> tensor<1x3x1x30xf32>
  %t = "o3.transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<3x3x30x64xf32>) -> tensor<3x3x64x30xf32>
  %s = "o3.matmul"(%q, %t) : (tensor<3x3x20x64xf32>, tensor<3x3x64x30xf32>) -> tensor<3x3x20x30xf32>
  %a = "o3.add"(%s, %m) : (tensor<3x3x20x30xf32>, tensor<3x1x1x30xf32>) -> tensor<3x3x20x30xf32>
  %b = "o3.add"(%a, %h) : (tensor<3x3x20x30xf32>, tensor<1x3x1x30xf32>) -> tensor<3x3x20x30xf32>
  %p = "o3.softmax"(%b) {axis = 3 : i64} : (tensor<3x3x20x30xf32>) -> tensor<3x3x20x30xf32>
  %y = "o3.matmul"(%p, %v) : (tensor<3x3x20x30xf32>, tensor<3x3x30x64xf32>) -> tensor<3x3x20x64xf32>
  return %y : tensor<3x3x20x64xf32>
}
