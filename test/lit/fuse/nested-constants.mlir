// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// A kernel of a loop has the constants that stand before the loop, as one beside them has.
//
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: func.call @k0_elementwise_{{[^(]*}}(%{{[^,]*}}, %{{[^,]*}}) : (tensor<64xf32>, tensor<64xf32>)
// CHECK: func.func private @k0_elementwise_{{.*}}(%{{[^,]*}}: tensor<64xf32>{{.*}}, %{{[^,]*}}: tensor<64xf32>
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: arith.mulf %{{.*}}, %[[TWO]]

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %y = scf.for %i = %zero to %n step %one iter_args(%so_far = %x) -> (tensor<64xf32>) {
    %e = tensor.empty() : tensor<64xf32>
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%so_far : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %m = arith.mulf %v, %two : f32
      %r = math.erf %m : f32
      linalg.yield %r : f32
    } -> tensor<64xf32>
    scf.yield %a : tensor<64xf32>
  }
  return %y : tensor<64xf32>
}
