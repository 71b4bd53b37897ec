// RUN: o3-opt --lower --fuse --level 2 %s | FileCheck %s
// RUN: o3-opt --lower --fuse --level 2 --no-fusion %s | FileCheck %s --check-prefix=APART
// A batch of one is place 0 of what the products read, and a loop of one turn of what they write.
//
// CHECK: call @k0_attention_
// CHECK-NOT: call
// CHECK: func.func private @k0_attention_
//
// APART-COUNT-3: call @k
// APART: no attention because of {{.*}}: it is another node: --no-fusion

func.func @main(%q: tensor<1x40x3x16xf32>, %k: tensor<1x50x3x16xf32>, %v: tensor<1x50x3x24xf32>) -> tensor<1x40x3x24xf32> {
  %a = "o3.transpose"(%q) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x40x3x16xf32>) -> tensor<1x3x40x16xf32> loc("a")
  %b = "o3.transpose"(%k) {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x50x3x16xf32>) -> tensor<1x3x16x50xf32> loc("b")
  %c = "o3.transpose"(%v) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x50x3x24xf32>) -> tensor<1x3x50x24xf32> loc("c")
  %s = "o3.matmul"(%a, %b) : (tensor<1x3x40x16xf32>, tensor<1x3x16x50xf32>) -> tensor<1x3x40x50xf32> loc("s")
  %p = "o3.softmax"(%s) {axis = 3 : i64} : (tensor<1x3x40x50xf32>) -> tensor<1x3x40x50xf32> loc("p")
  %y = "o3.matmul"(%p, %c) : (tensor<1x3x40x50xf32>, tensor<1x3x50x24xf32>) -> tensor<1x3x40x24xf32> loc("y")
  %t = "o3.transpose"(%y) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x3x40x24xf32>) -> tensor<1x40x3x24xf32> loc("t")
  return %t : tensor<1x40x3x24xf32>
}
