// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// Ops that read the same elements in their regions are one, also where what they read was made twice; those that
// read something else in equal regions stay.
//
// CHECK-NOT: o3.region_hash
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: call @k{{[0-9]}}_elementwise
// CHECK-NOT: call
// CHECK: return %[[A:[0-9]+]], %[[A]], %{{[0-9]+}}
// CHECK-NOT: o3.region_hash

func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %seven = arith.constant 7 : index
  %x1 = tensor.expand_shape %x [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %x2 = tensor.expand_shape %x [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %y1 = tensor.expand_shape %y [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %zero = arith.constant 0 : index
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %at = arith.subi %seven, %i : index
    %s = tensor.extract %x1[%at, %zero] : tensor<8x1xf32>
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %at = arith.subi %seven, %i : index
    %s = tensor.extract %x2[%at, %zero] : tensor<8x1xf32>
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %at = arith.subi %seven, %i : index
    %s = tensor.extract %y1[%at, %zero] : tensor<8x1xf32>
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %a, %b, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
