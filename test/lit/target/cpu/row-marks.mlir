// RUN: o3-opt --fuse --level 2 --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s
// RUN: sed 's/ins(%x, %max/ins(%z, %max/' %s | o3-opt --fuse --level 2 --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels - | FileCheck %s --check-prefix=OTHER
// The exponential of x minus the greatest x is one of nothing positive; of what something else is above it is not.
//
// CHECK-LABEL: func.func @main
// CHECK: arith.maximumf {{.*}}fastmath<{{.*}}nsz{{.*}}>
// CHECK: math.exp {{.*}}o3.not_positive
// OTHER-LABEL: func.func @main
// OTHER: math.exp
// OTHER-NOT: o3.not_positive

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

func.func @main(%x: tensor<64x96xf32>, %z: tensor<64x96xf32>) -> tensor<64x96xf32> {
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
  return %p : tensor<64x96xf32>
}
