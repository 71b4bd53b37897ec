// RUN: o3c --model %s --target hopper --precision fp16 --emit rewrite -o - | FileCheck %s
// RUN: o3c --model %s --target hopper --precision fp16 -o %t.so
// A value that a loop carries has the sizes that the loop tells, and what it is cast to has them, too.
//
// CHECK: scf.for %{{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (tensor<?x1xf32>)
// CHECK: "o3.cast"(%[[CARRIED]]) {o3.shape = [#[[MAP:[a-z0-9]+]]], to = f16} : (tensor<?x1xf32>) -> tensor<?x1xf16>
// CHECK: o3.arg_shapes = [{{.*}}, #[[MAP]]]
#map = affine_map<()[s0, s1] -> (s0, 1)>
#map1 = affine_map<()[s0, s1] -> (s1)>
#map2 = affine_map<()[s0, s1] -> ()>
module attributes {o3.interface = {guards = [], inputs = [{name = "x", shape = #map, type = tensor<?x1xf32>}], outputs = [{name = "y", shape = #map, type = tensor<?x1xf32>}], symbols = ["M", "$1"]}, o3.stage = "normalize"} {
  func.func @main(%x: tensor<?x1xf32> {o3.element = f32, o3.name = "x", o3.shape = #map}) -> (tensor<?x1xf32> {o3.element = f32, o3.name = "y", o3.shape = #map}) attributes {o3.guards = [], o3.symbols = [{kind = "input", name = "M"}, {kind = "data", name = "$1"}]} {
    %w = "o3.constant"() {value = dense<0.0924034044> : tensor<1x1xf32>} : () -> tensor<1x1xf32>
    %c3 = arith.constant 3 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<?x1xf32>) {
      %p = "o3.matmul"(%a, %w) {o3.shape = [#map]} : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
      %s = "o3.cumulate"(%p) {axis = 0 : i64, exclusive = false, kind = "sum", o3.shape = [#map], reverse = false} : (tensor<?x1xf32>) -> tensor<?x1xf32>
      %e = "o3.erf"(%s) {o3.shape = [#map]} : (tensor<?x1xf32>) -> tensor<?x1xf32>
      %n = "o3.insert_slice"(%a, %e) {axes = array<i64>, o3.shape = [#map], starts = #map2} : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
      scf.yield %n : tensor<?x1xf32>
    } {o3.arg_shapes = [#map2, #map], o3.iteration = 1 : i64, o3.shape = [#map]}
    return %r : tensor<?x1xf32>
  }
}
