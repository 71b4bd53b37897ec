// A loop of a known number of iterations in which sizes stay: scf.for. The iteration's number is a symbol, the
// scan result is written in place, the carried value of symbolic size over its predecessor.
// RUN: o3-opt --normalize %s | FileCheck %s

// CHECK: %[[EMPTY:.*]] = "o3.empty"() {{.*}} : () -> tensor<4x?xf32>
// CHECK: scf.for %{{.*}} iter_args(%[[V:.*]] = %arg0, %[[ALL:.*]] = %[[EMPTY]]) -> (tensor<?xf32>, tensor<4x?xf32>)
// CHECK: %[[NEXT:.*]] = "o3.add"(%[[V]], %arg1)
// CHECK: %[[PART:.*]] = "o3.reshape"(%[[NEXT]]) {{.*}} -> tensor<1x?xf32>
// CHECK: %[[GROWN:.*]] = "o3.insert_slice"(%[[ALL]], %[[PART]]) {axes = array<i64: 0>, {{.*}}, starts = #{{.*}}}
// CHECK: %[[KEPT:.*]] = "o3.insert_slice"(%[[V]], %[[NEXT]]) {axes = array<i64>,
// CHECK: scf.yield %[[KEPT]], %[[GROWN]]
// CHECK: o3.arg_shapes = [{{.*}}], o3.iteration = 2 : i64, o3.shape = [{{.*}}]
module attributes {o3.stage = "import"} {
  func.func @main(%v: !o3.value {o3.dims = ["n"], o3.name = "v", o3.type = tensor<?xf32>},
                  %x: !o3.value {o3.dims = ["m"], o3.name = "x", o3.type = tensor<?xf32>}) -> (!o3.value {o3.name = "last"}, !o3.value {o3.name = "all"}) {
    %m = "o3.initializer"() {name = "M", value = dense<4> : tensor<i64>} : () -> !o3.value
    %r:2 = "o3.node"(%m, %v, %x) {attrs = {body = @body}, captures = 1 : i64, domain = "", name = "loop", op = "Loop", opset = 16 : i64, outputs = ["last", "all"], present = [true, false, true]} : (!o3.value, !o3.value, !o3.value) -> (!o3.value, !o3.value)
    return %r#0, %r#1 : !o3.value, !o3.value
  }
  func.func private @body(%i: !o3.value, %c: !o3.value, %v: !o3.value, %x: !o3.value) -> (!o3.value, !o3.value, !o3.value) {
    %0 = "o3.node"(%v, %x) {attrs = {}, domain = "", name = "add", op = "Add", opset = 16 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value
    return %c, %0, %0 : !o3.value, !o3.value, !o3.value
  }
}
