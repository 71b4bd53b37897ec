// RUN: o3-opt --lower --fuse --level 2 %s | FileCheck %s
// Four heads of queries share their keys and values, which products of few vectors read as they lie.
//
// CHECK: call @k0_contraction_
// CHECK: call @k2_rows_
// CHECK: call @k1_contraction_
// CHECK: func.func private @k0_contraction_
// CHECK-SAME: no attention because of {{.*}}: its queries are few: packing keys and values takes longer

func.func @main(%q: tensor<2x4x16xf32>, %k: tensor<2x16x50xf32>, %v: tensor<2x50x24xf32>) -> tensor<2x4x24xf32> {
  %s = "o3.matmul"(%q, %k) : (tensor<2x4x16xf32>, tensor<2x16x50xf32>) -> tensor<2x4x50xf32> loc("s")
  %p = "o3.softmax"(%s) {axis = 2 : i64} : (tensor<2x4x50xf32>) -> tensor<2x4x50xf32> loc("p")
  %y = "o3.matmul"(%p, %v) : (tensor<2x4x50xf32>, tensor<2x50x24xf32>) -> tensor<2x4x24xf32> loc("y")
  return %y : tensor<2x4x24xf32>
}
