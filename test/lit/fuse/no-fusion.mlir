// RUN: o3-opt --fuse --level 2 --no-fusion --locations %s | FileCheck %s
// RUN: o3-opt --fuse --level 2 %s | FileCheck --check-prefix=FUSED %s
// Ops of one node stay together, those of another have a kernel of their own.
//
// CHECK: call @k{{[01]}}_elementwise_gelu
// CHECK: call @k{{[01]}}_elementwise_add
// FUSED-COUNT-1: call @k
// FUSED-NOT: call @k

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.erf %v : f32
    linalg.yield %r : f32
  } -> tensor<64xf32> loc("gelu")
  %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%a, %x : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.mulf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<64xf32> loc("gelu")
  %c = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%b, %y : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %r = arith.addf %v, %w : f32
    linalg.yield %r : f32
  } -> tensor<64xf32> loc("add")
  return %c : tensor<64xf32>
}
