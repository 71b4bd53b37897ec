// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// A body that takes elements, at places it computes, from a tensor of one value needs that value only; what another
// result needs of the tensor is made on its own.
//
// CHECK-LABEL: func.func @main
// CHECK: call @k{{[0-9]}}_elementwise
// CHECK: func.func private @k{{[0-9]}}_elementwise
// CHECK-NOT: tensor.extract
// CHECK: arith.mulf %{{.*}}, %{{cst.*}} : f32

func.func @main(%w: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<8xf32>
  %half = arith.constant 2 : index
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%o: f32):
    linalg.yield %two : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%w : tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %i = linalg.index 0 : index
    %at = arith.divui %i, %half : index
    %s = tensor.extract %x[%at] : tensor<4xf32>
    %p = arith.mulf %l, %s : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  return %y, %x : tensor<8xf32>, tensor<4xf32>
}
