// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// Ops in a branch become a kernel that is called there; what they read from outside is an argument.
//
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<64xf32>, %[[C:.*]]: i1
// CHECK: scf.if %[[C]]
// CHECK: func.call @k0_elementwise_{{.*}}(%[[X]],
// CHECK-NOT: linalg.generic
// CHECK: func.func private @k0_elementwise_
// CHECK: math.erf
// CHECK: arith.mulf

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<64xf32>, %c: i1) -> tensor<64xf32> {
  %y = scf.if %c -> (tensor<64xf32>) {
    %e = tensor.empty() : tensor<64xf32>
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %r = math.erf %v : f32
      linalg.yield %r : f32
    } -> tensor<64xf32>
    %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%a, %x : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
    ^bb0(%v: f32, %w: f32, %o: f32):
      %r = arith.mulf %v, %w : f32
      linalg.yield %r : f32
    } -> tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  } else {
    scf.yield %x : tensor<64xf32>
  }
  return %y : tensor<64xf32>
}
