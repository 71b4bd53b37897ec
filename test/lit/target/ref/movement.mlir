// Boxes are slices; indices from tensors are checked once before the loop and clamped inside of it, constants that fit
// are not checked; scatters are loops that insert.
// RUN: o3-opt --lower %s | FileCheck %s
#x = affine_map<()[s0] -> (s0, 8)>
#start = affine_map<()[s0] -> (2)>
#last = affine_map<()[s0] -> (s0 - 1)>
#none = affine_map<()[s0] -> (0, 0)>
#lows = affine_map<()[s0] -> (1, 0)>
#padded = affine_map<()[s0] -> (s0 + 1, 8)>
module attributes {o3.stage = "normalize"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<?x8xf32> {o3.element = f32, o3.name = "x", o3.shape = #x},
                  %i: tensor<3xi32> {o3.element = i32, o3.name = "i"}, %u: tensor<3x8xf32> {o3.element = f32, o3.name = "u"})
      -> (tensor<?x3xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<3x8xf32>, tensor<?x2xf32>, tensor<?x8xf32>)
      attributes {o3.symbols = [{kind = "input", name = "N"}], o3.guards = []} {
    // CHECK: tensor.extract_slice %arg0[0, 2] [%{{.*}}, 3] [1, 2] : tensor<?x8xf32> to tensor<?x3xf32>
    %0 = "o3.slice"(%x) {axes = array<i64: 1>, starts = #start, steps = array<i64: 2>, o3.shape = [affine_map<()[s0] -> (s0, 3)>]} : (tensor<?x8xf32>) -> tensor<?x3xf32>
    // CHECK: linalg.generic
    // CHECK: arith.muli
    // CHECK: tensor.extract %arg0
    %1 = "o3.slice"(%x) {axes = array<i64: 0>, starts = #last, steps = array<i64: -1>, o3.shape = [#x]} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    // CHECK: tensor.insert_slice
    %v = "o3.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %2 = "o3.pad"(%x, %v) {lows = #lows, highs = #none, mode = "constant", o3.shape = [#padded]} : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
    // CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]
    // CHECK: cf.assert %{{.*}}, "node 'take': an index is out of range"
    // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]{{.*}}o3.kernel = "gather"
    %3 = "o3.gather"(%x, %i) {axis = 0 : i64} : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<3x8xf32> loc("take")
    // CHECK-NOT: cf.assert
    // CHECK: o3.kernel = "gather"
    %k = "o3.constant"() {value = dense<[0, -8]> : tensor<2xi64>} : () -> tensor<2xi64>
    %4 = "o3.gather"(%x, %k) {axis = 1 : i64, o3.shape = [affine_map<()[s0] -> (s0, 2)>]} : (tensor<?x8xf32>, tensor<2xi64>) -> tensor<?x2xf32>
    // CHECK: cf.assert
    // CHECK: scf.for %{{.*}} iter_args(%[[Y:.*]] = %arg0)
    // CHECK: scf.for
    // CHECK: arith.addf
    // CHECK: tensor.insert
    %r = "o3.reshape"(%i) : (tensor<3xi32>) -> tensor<3x1xi32>
    %5 = "o3.scatter_nd"(%x, %r, %u) {reduction = "add", o3.shape = [#x]} : (tensor<?x8xf32>, tensor<3x1xi32>, tensor<3x8xf32>) -> tensor<?x8xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<?x3xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<3x8xf32>, tensor<?x2xf32>, tensor<?x8xf32>
  }
}
