// RUN: o3-opt --target x86-64-v4 --fuse --level 2 --cpu-schedule --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// RUN: sed 's/math.exp/math.absf/' %s | o3-opt --target x86-64-v4 --fuse --level 2 --cpu-schedule --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels - | FileCheck %s --check-prefix=CHEAP
// Beside the exponentials of 256 elements as many of the next row are asked for, a line at a time; the last 128 of 640
// elements come alone. Beside cheaper ops nothing is.
//
// CHECK-LABEL: func.func @main
// CHECK: arith.maximumf
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[BLOCK:.*]] {
// CHECK-COUNT-16: memref.prefetch %{{.*}}[%{{.*}}], read, locality<3>, data
// CHECK-NOT: memref.prefetch
// CHECK: scf.for
// CHECK: math.exp
// CHECK-NOT: memref.prefetch
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHEAP-LABEL: func.func @main
// CHEAP-NOT: memref.prefetch

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

func.func @main(%x: tensor<1024x640xf32>, %z: tensor<1024x640xf32>) -> tensor<1024x640xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1024x640xf32>
  %maxe = tensor.empty() : tensor<1024xf32>
  %maxi = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%maxe : tensor<1024xf32>) {
  ^bb0(%o: f32):
    linalg.yield %low : f32
  } -> tensor<1024xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1024x640xf32>) outs(%maxi : tensor<1024xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.maximumf %l, %o : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<1024x640xf32>, tensor<1024xf32>) outs(%e : tensor<1024x640xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %d = arith.subf %l, %r : f32
    %s = math.exp %d : f32
    linalg.yield %s : f32
  } -> tensor<1024x640xf32>
  return %p : tensor<1024x640xf32>
}
