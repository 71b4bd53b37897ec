// Slices with constant bounds keep sizes as expressions of the symbols, clamped where they may be small; bounds that
// only the run knows give data symbols, bound before the slice; what takes everything is gone.
// RUN: o3-opt --normalize %s | FileCheck %s

// CHECK-DAG: #[[HALF:.*]] = affine_map<()[s0, s1] -> (s0, (s1 + 1) floordiv 2)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<()[s0, s1, s2] -> (s0, s2)>
// CHECK-DAG: #[[BEFORE:.*]] = affine_map<()[s0, s1, s2] -> (s1 - s2)>
// CHECK-DAG: #[[BACK:.*]] = affine_map<()[s0, s1, s2] -> (s1 - 1)>
// CHECK-DAG: #[[REST:.*]] = affine_map<()[s0, s1, s2, s3] -> (s0, s3)>
// CHECK-DAG: #[[DATA:.*]] = affine_map<()[s0, s1, s2, s3, s4] -> (s4, s1)>
// CHECK: {kind = "min", name = "$2", of = {{.*}}}, {kind = "max", name = "$3", of = {{.*}}}, {kind = "data", name = "$4"}
// CHECK-NOT: o3.slice
// CHECK: "o3.slice"(%arg0) {axes = array<i64: 1>, o3.shape = [#[[HALF]]], {{.*}}steps = array<i64: 2>}
// CHECK: "o3.slice"(%arg0) {axes = array<i64: 1>, o3.shape = [#[[LAST]]], starts = #[[BEFORE]], steps = array<i64: 1>}
// CHECK: "o3.slice"(%arg0) {axes = array<i64: 1>, {{.*}}starts = #[[BACK]], steps = array<i64: -1>}
// CHECK: "o3.slice"(%arg0) {axes = array<i64: 1>, o3.shape = [#[[REST]]]
// CHECK: "o3.bind"(%{{.*}}) {symbols = array<i64: 4>}
// CHECK: "o3.dynamic_slice"(%arg0, %{{.*}}, %{{.*}}) {axes = array<i64: 0>, o3.shape = [#[[DATA]]]}
module attributes {o3.stage = "import"} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "M"], o3.name = "x", o3.type = tensor<?x?xf32>},
                  %from: !o3.value {o3.dims = [""], o3.name = "from", o3.type = tensor<1xi64>})
      -> (!o3.value {o3.name = "a"}, !o3.value {o3.name = "b"}, !o3.value {o3.name = "c"}, !o3.value {o3.name = "d"}, !o3.value {o3.name = "e"}, !o3.value {o3.name = "f"}) {
    %zero = "o3.initializer"() {name = "zero", value = dense<0> : tensor<1xi64>} : () -> !o3.value
    %one = "o3.initializer"() {name = "one", value = dense<1> : tensor<1xi64>} : () -> !o3.value
    %two = "o3.initializer"() {name = "two", value = dense<2> : tensor<1xi64>} : () -> !o3.value
    %minus = "o3.initializer"() {name = "minus", value = dense<-1> : tensor<1xi64>} : () -> !o3.value
    %three = "o3.initializer"() {name = "three", value = dense<-3> : tensor<1xi64>} : () -> !o3.value
    %far = "o3.initializer"() {name = "far", value = dense<9223372036854775807> : tensor<1xi64>} : () -> !o3.value
    %near = "o3.initializer"() {name = "near", value = dense<-9223372036854775807> : tensor<1xi64>} : () -> !o3.value
    %a = "o3.node"(%x, %zero, %far, %one) {attrs = {}, domain = "", name = "a", op = "Slice", opset = 13 : i64, outputs = ["a"]} : (!o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    %b = "o3.node"(%x, %zero, %far, %one, %two) {attrs = {}, domain = "", name = "b", op = "Slice", opset = 13 : i64, outputs = ["b"]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    %c = "o3.node"(%x, %three, %far, %one) {attrs = {}, domain = "", name = "c", op = "Slice", opset = 13 : i64, outputs = ["c"]} : (!o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    %d = "o3.node"(%x, %minus, %near, %one, %minus) {attrs = {}, domain = "", name = "d", op = "Slice", opset = 13 : i64, outputs = ["d"]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    %e = "o3.node"(%x, %one, %far, %one) {attrs = {}, domain = "", name = "e", op = "Slice", opset = 13 : i64, outputs = ["e"]} : (!o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    %f = "o3.node"(%x, %from, %far, %zero) {attrs = {}, domain = "", name = "f", op = "Slice", opset = 13 : i64, outputs = ["f"]} : (!o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value
    return %a, %b, %c, %d, %e, %f : !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value
  }
}
