// Block arguments define symbols: o3.iteration the first one, o3.arg_shapes the sizes of the others. The attributes
// are gone after the lowering.
// RUN: o3-opt --lower %s | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[Y:.*]] = %{{.*}}) -> (tensor<?x3xf32>)
// CHECK: %[[ROW:.*]] = tensor.extract_slice %arg0[%[[T]], 0] [1, 3] [1, 1]
// CHECK: tensor.insert_slice %[[ROW]] into %[[Y]][%[[T]], 0] [1, 3] [1, 1]
// CHECK-NOT: o3.
#none = affine_map<()[s0, s1] -> ()>
#rows = affine_map<()[s0, s1] -> (s0, 3)>
#start = affine_map<()[s0, s1] -> (s1)>
#count = affine_map<()[s0, s1] -> (s0)>
module attributes {o3.stage = "normalize"} {
  func.func @main(%x: tensor<?x3xf32> {o3.element = f32, o3.name = "x", o3.shape = #rows})
      -> (tensor<?x3xf32> {o3.element = f32, o3.name = "y", o3.shape = #rows})
      attributes {o3.guards = [], o3.symbols = [{kind = "input", name = "n"}, {kind = "data", name = "$1"}]} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = "o3.size"() {map = #count} : () -> tensor<i64>
    %element = tensor.extract %n[] : tensor<i64>
    %trip = arith.index_cast %element : i64 to index
    %empty = "o3.empty"() {o3.shape = [#rows]} : () -> tensor<?x3xf32>
    %y = scf.for %t = %zero to %trip step %one iter_args(%all = %empty) -> (tensor<?x3xf32>) {
      %row = "o3.slice"(%x) {axes = array<i64: 0>, starts = #start, steps = array<i64: 1>} : (tensor<?x3xf32>) -> tensor<1x3xf32>
      %next = "o3.insert_slice"(%all, %row) {axes = array<i64: 0>, starts = #start, o3.shape = [#rows]} : (tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
      scf.yield %next : tensor<?x3xf32>
    } {o3.arg_shapes = [#none, #rows], o3.iteration = 1 : i64, o3.shape = [#rows]}
    return %y : tensor<?x3xf32>
  }
}
