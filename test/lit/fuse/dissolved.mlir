// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// Joined, both values of the choice are the same one, and the condition decides nothing: no kernel is left that would
// return its argument.
//
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<3x5xf32>
// CHECK-NOT: call
// CHECK: return %[[X]]
// CHECK-NOT: func.func private

#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %ec = tensor.empty() : tensor<3x5xi1>
  %c = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<3x5xf32>, tensor<3x5xf32>) outs(%ec : tensor<3x5xi1>) {
  ^bb0(%l: f32, %r: f32, %o: i1):
    %s = arith.cmpf olt, %l, %r : f32
    linalg.yield %s : i1
  } -> tensor<3x5xi1>
  %e = tensor.empty() : tensor<3x5xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%c, %x, %x : tensor<3x5xi1>, tensor<3x5xf32>, tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%p: i1, %l: f32, %r: f32, %o: f32):
    %s = arith.select %p, %l, %r : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
