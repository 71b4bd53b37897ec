// What users see of a model is kept in an attribute that later stages leave alone.
// RUN: o3-opt --record-interface %s | FileCheck %s

// CHECK-DAG: #[[IN:.*]] = affine_map<()[s0, s1] -> (s0, 3)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<()[s0, s1] -> (s0 * 2, s1)>
// CHECK: module attributes {o3.interface = {guards = ["M must be at least 1"],
// CHECK-SAME: inputs = [{name = "x", shape = #[[IN]], type = tensor<?x3xf32>}, {name = "input1", type = tensor<4xi64>}],
// CHECK-SAME: outputs = [{name = "y", shape = #[[OUT]], type = tensor<?x?xf32>}],
// CHECK-SAME: symbols = ["N", "M"]}}
func.func private @main(
    tensor<?x3xf32> {o3.name = "x", o3.shape = affine_map<()[s0, s1] -> (s0, 3)>}, tensor<4xi64>)
    -> (tensor<?x?xf32> {o3.name = "y", o3.shape = affine_map<()[s0, s1] -> (s0 * 2, s1)>})
    attributes {o3.symbols = [{name = "N"}, {name = "M"}], o3.guards = [{text = "M must be at least 1"}]}
