// RUN: o3c --model %s --target hopper -O2 --emit loops -o - | FileCheck %s
// The check of indices runs on the card, which notes its number in the error word: the host waits for nothing, and the
// run can be recorded.
//
// CHECK: o3.gpu_messages = ["{{.*}}an index is out of range"]
// CHECK-SAME: o3.replayable
// CHECK-NOT: call @o3rt_gpu_to_host
func.func @main(%x: tensor<5x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %y = "o3.gather"(%x, %i) {axis = 0 : i64} : (tensor<5x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
