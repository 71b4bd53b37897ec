// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// Softmax: maximum, exponentials, sum and quotient are one kernel of rows; the exponentials lie in the row of the
// result, and of the buffers that the kernel makes none has the size of the result.
//
// CHECK-LABEL: func.func @main
// CHECK: call @k0_rows_
// CHECK-NOT: linalg.generic
// CHECK: func.func private @k0_rows_{{.*}}, %[[OUT:arg1]]: tensor<64x96xf32>{{.*}}o3.rows = array<i64: 0>
// CHECK-NOT: tensor.empty() : tensor<64x96xf32>
// CHECK: %[[EXP:.*]] = linalg.generic{{.*}}outs(%[[OUT]] : tensor<64x96xf32>)
// CHECK: math.exp
// CHECK: linalg.generic{{.*}}outs(%[[EXP]] : tensor<64x96xf32>)
// CHECK: arith.divf

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#t = affine_map<(i, j) -> (j, i)>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

func.func @main(%x: tensor<64x96xf32>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %maxe = tensor.empty() : tensor<64xf32>
  %maxi = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%maxe : tensor<64xf32>) {
  ^bb0(%o: f32):
    linalg.yield %low : f32
  } -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x96xf32>) outs(%maxi : tensor<64xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.maximumf %l, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<64x96xf32>, tensor<64xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %d = arith.subf %l, %r : f32
    %s = math.exp %d : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  %sume = tensor.empty() : tensor<64xf32>
  %sumi = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%sume : tensor<64xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<64x96xf32>) outs(%sumi : tensor<64xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.addf %l, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %sum : tensor<64x96xf32>, tensor<64xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %s = arith.divf %l, %r : f32
    linalg.yield %s : f32
  } -> tensor<64x96xf32>
  return %y : tensor<64x96xf32>
}
