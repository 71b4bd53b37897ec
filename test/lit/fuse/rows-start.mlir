// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// A kernel of rows has its result in place of what a sum starts at, which must not be something that is given.
//
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<300xf32>)
// CHECK-NOT: _rows_
// CHECK: outs(%[[Q]] : tensor<300xf32>)
// CHECK-NOT: _rows_

#row = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
#vector = affine_map<(i) -> (i)>
func.func @main(%x: tensor<300x500xf32>, %q: tensor<300xf32>) -> tensor<300xf32> {
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<300x500xf32>) outs(%q : tensor<300xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %o, %l : f32
    linalg.yield %t : f32
  } -> tensor<300xf32>
  %e = tensor.empty() : tensor<300xf32>
  %y = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]} ins(%s : tensor<300xf32>) outs(%e : tensor<300xf32>) {
  ^bb0(%l: f32, %o: f32):
    %k = arith.negf %l : f32
    linalg.yield %k : f32
  } -> tensor<300xf32>
  return %y : tensor<300xf32>
}
