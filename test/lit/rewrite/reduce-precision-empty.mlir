// RUN: o3c --model %s --target hopper --precision fp16 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper --precision fp16 -o %t.so
// What loops write into has no contents to be stored narrow, though several of them begin with it.
//
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = "o3.empty"() : () -> tensor<4x8xf32>
// CHECK-NOT: "o3.cast"(%[[E]])
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[E]])
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[E]])
func.func @main(%x: tensor<1x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %e = "o3.empty"() : () -> tensor<4x8xf32>
  %a = scf.for %i = %zero to %four step %one iter_args(%so_far = %e) -> (tensor<4x8xf32>) {
    %y = "o3.exp"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %n = "o3.insert_slice"(%so_far, %y) {axes = array<i64: 0>, starts = affine_map<() -> (2)>} : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
    scf.yield %n : tensor<4x8xf32>
  }
  %b = scf.for %i = %zero to %four step %one iter_args(%so_far = %e) -> (tensor<4x8xf32>) {
    %y = "o3.sin"(%x) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %n = "o3.insert_slice"(%so_far, %y) {axes = array<i64: 0>, starts = affine_map<() -> (2)>} : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
    scf.yield %n : tensor<4x8xf32>
  }
  return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}
