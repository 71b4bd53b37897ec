// RUN: o3-opt --target x86-64-v3 --fuse --level 2 %s | FileCheck %s
// RUN: o3-opt --target x86-64-v4 --fuse --level 2 %s | FileCheck %s --check-prefix FITS
// RUN: o3-opt --target x86-64-v3 --fuse --cpu-schedule --level 2 %s | FileCheck %s --check-prefix ROWS
// A product and the depthwise convolution that reads its result are one kernel where that is more than caches hold.
//
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = tensor.empty() : tensor<1x3x32x64x16xf32>
// CHECK: call @k0_chain_{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[E]])
// CHECK-NOT: call
// CHECK: return
// CHECK: func.func private @k0_chain_
// CHECK-SAME: o3.kernel_kind = "chain"
// CHECK: linalg.generic{{.*}}"reduction"{{.*}}tensor<3x1x16x16xf32>
// CHECK: tensor.extract {{.*}} : tensor<1x3x64x128x16xf32>
// CHECK: linalg.generic{{.*}}"reduction"{{.*}}tensor<3x3x3x16xf32>
//
// FITS: func.func private @k0_contraction_{{.*}}o3.stop = "linalg.generic: its input comes from a cache as fast as it is used"
// FITS: func.func private @k1_contraction_
//
// ROWS: linalg.generic{{.*}}family = "tiles"{{.*}}strip_rows = 1
// ROWS: linalg.generic{{.*}}family = "tiles"{{.*}}strip_rows = 4

#id = affine_map<(n, c, h, w, l) -> (n, c, h, w, l)>
#bias = affine_map<(n, c, h, w, l) -> (c, l)>
#x1 = affine_map<(n, c, h, w, l, i, k) -> (n, i, h, w, k)>
#w1 = affine_map<(n, c, h, w, l, i, k) -> (c, i, k, l)>
#y1 = affine_map<(n, c, h, w, l, i, k) -> (n, c, h, w, l)>
#x2 = affine_map<(n, c, h, w, l, i, j) -> (n, c, h * 2 + i, w * 2 + j, l)>
#w2 = affine_map<(n, c, h, w, l, i, j) -> (c, i, j, l)>

func.func @main(%x: tensor<1x1x64x128x16xf32>, %w1: tensor<3x1x16x16xf32>, %w2: tensor<3x3x3x16xf32>, %b: tensor<3x16xf32>) -> tensor<1x3x32x64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %c127 = arith.constant 127 : index
  %c128 = arith.constant 128 : index
  %e1 = tensor.empty() : tensor<1x3x64x128x16xf32>
  %i1 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%e1 : tensor<1x3x64x128x16xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<1x3x64x128x16xf32>
  %p1 = linalg.generic {indexing_maps = [#x1, #w1, #y1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w1 : tensor<1x1x64x128x16xf32>, tensor<3x1x16x16xf32>) outs(%i1 : tensor<1x3x64x128x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x3x64x128x16xf32>
  %q1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%p1 : tensor<1x3x64x128x16xf32>) outs(%e1 : tensor<1x3x64x128x16xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.maximumf %l, %zero : f32
    linalg.yield %s : f32
  } -> tensor<1x3x64x128x16xf32>
  %e2 = tensor.empty() : tensor<1x3x66x130x16xf32>
  %border = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%e2 : tensor<1x3x66x130x16xf32>) {
  ^bb0(%o: f32):
    %c = linalg.index 1 : index
    %h = linalg.index 2 : index
    %w = linalg.index 3 : index
    %l = linalg.index 4 : index
    %h1 = arith.subi %h, %c1 : index
    %hi = arith.cmpi ult, %h1, %c64 : index
    %h2 = arith.minsi %h1, %c63 : index
    %h3 = arith.maxsi %h2, %c0 : index
    %w1_ = arith.subi %w, %c1 : index
    %wi = arith.cmpi ult, %w1_, %c128 : index
    %in = arith.andi %hi, %wi : i1
    %w2_ = arith.minsi %w1_, %c127 : index
    %w3 = arith.maxsi %w2_, %c0 : index
    %v = tensor.extract %q1[%c0, %c, %h3, %w3, %l] : tensor<1x3x64x128x16xf32>
    %s = arith.select %in, %v, %zero : f32
    linalg.yield %s : f32
  } -> tensor<1x3x66x130x16xf32>
  %e3 = tensor.empty() : tensor<1x3x32x64x16xf32>
  %i2 = linalg.generic {indexing_maps = [#bias, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%b : tensor<3x16xf32>) outs(%e3 : tensor<1x3x32x64x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<1x3x32x64x16xf32>
  %p2 = linalg.generic {indexing_maps = [#x2, #w2, #y1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%border, %w2 : tensor<1x3x66x130x16xf32>, tensor<3x3x3x16xf32>) outs(%i2 : tensor<1x3x32x64x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<1x3x32x64x16xf32>
  return %p2 : tensor<1x3x32x64x16xf32>
}
