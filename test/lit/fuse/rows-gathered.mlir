// RUN: o3-opt --fuse --level 2 %s | FileCheck %s
// RUN: o3-opt --fuse --level 2 --cpu-bufferize --cpu-kernel-results --cpu-plan-memory --cpu-kernel-marks --cpu-kernels %s | FileCheck %s --check-prefix=LOOPS
// What is gathered tells how long a row is and cannot be merged into the sum; of unknown length it has no place on
// the stack, and is a kernel of its own.
//
// CHECK-LABEL: func.func @main
// CHECK: call @k{{.*}}_elementwise_
// CHECK: call @k{{.*}}_rows_
//
// LOOPS-LABEL: func.func @main
// LOOPS-NOT: memref.alloca

#row = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
#vector = affine_map<(i) -> (i)>
func.func @main(%x: tensor<2x?x33xf32>) -> tensor<2xf32> {
  %one = arith.constant 1 : index
  %at = arith.constant 13 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %one : tensor<2x?x33xf32>
  %e = tensor.empty(%n) : tensor<2x?xf32>
  %g = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<2x?xf32>) attrs = {o3.kernel = "gather"} {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j, %at] : tensor<2x?x33xf32>
    linalg.yield %v : f32
  } -> tensor<2x?xf32>
  %es = tensor.empty() : tensor<2xf32>
  %f = linalg.generic {indexing_maps = [#vector], iterator_types = ["parallel"]} outs(%es : tensor<2xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<2xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%g : tensor<2x?xf32>) outs(%f : tensor<2xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %o, %l : f32
    linalg.yield %t : f32
  } -> tensor<2xf32>
  return %s : tensor<2xf32>
}
