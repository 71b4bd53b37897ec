// RUN: o3-opt --simplify --lower --fuse --level 2 --target x86-64-v4 %s | FileCheck %s
// RUN: o3-opt --simplify --lower --fuse --level 2 --target hopper %s | FileCheck %s
// LayerNorm as exporters write it, of a batch of one, and a softmax of few long rows: each is one kernel. The squares are
// no powers, means are read by the loop over the batch, and for a GPU sums are not split whose terms meet what is made of
// them.
//
// CHECK-LABEL: func.func @main
// CHECK: call @k{{[01]}}_rows_
// CHECK: call @k{{[01]}}_rows_
// CHECK-NOT: call
// CHECK: return
// CHECK-NOT: math.powf
module attributes {o3.stage = "rewrite"} {
  func.func @main(%x: tensor<1x40x120xf32>, %z: tensor<1x16x6625xf32>) -> (tensor<1x40x120xf32>, tensor<1x16x6625xf32>) attributes {o3.symbols = [], o3.guards = []} {
    %two = "o3.constant"() {value = dense<2.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %small = "o3.constant"() {value = dense<1.0e-5> : tensor<1xf32>} : () -> tensor<1xf32>
    %mean = "o3.reduce"(%x) {kind = "mean", axes = array<i64: 2>, keepdims = true} : (tensor<1x40x120xf32>) -> tensor<1x40x1xf32>
    %d = "o3.sub"(%x, %mean) : (tensor<1x40x120xf32>, tensor<1x40x1xf32>) -> tensor<1x40x120xf32>
    %s = "o3.pow"(%d, %two) : (tensor<1x40x120xf32>, tensor<1xf32>) -> tensor<1x40x120xf32>
    %v = "o3.reduce"(%s) {kind = "mean", axes = array<i64: 2>, keepdims = true} : (tensor<1x40x120xf32>) -> tensor<1x40x1xf32>
    %e = "o3.add"(%v, %small) : (tensor<1x40x1xf32>, tensor<1xf32>) -> tensor<1x40x1xf32>
    %r = "o3.sqrt"(%e) : (tensor<1x40x1xf32>) -> tensor<1x40x1xf32>
    %n = "o3.div"(%d, %r) : (tensor<1x40x120xf32>, tensor<1x40x1xf32>) -> tensor<1x40x120xf32>
    %p = "o3.softmax"(%z) {axis = 2 : i64} : (tensor<1x16x6625xf32>) -> tensor<1x16x6625xf32>
    return %n, %p : tensor<1x40x120xf32>, tensor<1x16x6625xf32>
  }
}
