// Halves are summed in f32, means of integers in i64; a running sum carries a line of accumulators.
// RUN: o3-opt --lower %s | FileCheck %s
module attributes {o3.stage = "normalize"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%h: tensor<4x5xf16>, %u: tensor<4x5xui8>, %flags: tensor<2xi64>)
      -> (tensor<4xf16>, tensor<1x5xui8>, tensor<4xi64>, tensor<4x5xf16>, tensor<4x5xui8>)
      attributes {o3.symbols = [], o3.guards = []} {
    // CHECK: iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x5xf16>) outs(%{{.*}} : tensor<4xf32>)
    // CHECK: arith.addf %{{.*}} : f32
    // CHECK: arith.truncf %{{.*}} : f32 to f16
    %0 = "o3.reduce"(%h) {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<4x5xf16>) -> tensor<4xf16>
    // CHECK: iterator_types = ["reduction", "parallel"]} ins(%arg1 : tensor<4x5xi8>) outs(%{{.*}} : tensor<5xi64>)
    // CHECK: arith.extui %{{.*}} : i8 to i64
    // CHECK: arith.divsi
    // CHECK: arith.trunci %{{.*}} : i64 to i8
    %1 = "o3.reduce"(%u) {kind = "mean", axes = array<i64: 0>, keepdims = true} : (tensor<4x5xui8>) -> tensor<1x5xui8>
    // CHECK: linalg.index 1
    %2 = "o3.arg_reduce"(%h) {kind = "max", axis = 1 : i64, keepdims = false, select_last = false} : (tensor<4x5xf16>) -> tensor<4xi64>
    // CHECK: iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x5xf16>) outs(%{{.*}}, %{{.*}} : tensor<4x5xf16>, tensor<4xf32>) attrs = {o3.kernel = "scan"}
    %3 = "o3.cumulate"(%h) {kind = "sum", axis = 1 : i64, exclusive = false, reverse = false} : (tensor<4x5xf16>) -> tensor<4x5xf16>
    // CHECK: scf.for
    // CHECK: scf.for
    // CHECK: arith.maxui
    %4 = "o3.dynamic_reduce"(%u, %flags) {kind = "max"} : (tensor<4x5xui8>, tensor<2xi64>) -> tensor<4x5xui8>
    return %0, %1, %2, %3, %4 : tensor<4xf16>, tensor<1x5xui8>, tensor<4xi64>, tensor<4x5xf16>, tensor<4x5xui8>
  }
}
