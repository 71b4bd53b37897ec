// Ops whose scalar code is for one kind of numbers are refused for others.
// RUN: split-file %s %t
// RUN: not o3-opt --lower %t/nan.mlir 2>&1 | FileCheck %t/nan.mlir
// RUN: not o3-opt --lower %t/not.mlir 2>&1 | FileCheck %t/not.mlir
//--- nan.mlir
// CHECK: error: unsupported: node 'n': op o3.is_nan is not defined for its element type
module attributes {o3.stage = "normalize"} {
  func.func @main(%x: tensor<4xi32>) -> tensor<4xi1> attributes {o3.symbols = [], o3.guards = []} {
    %0 = "o3.is_nan"(%x) : (tensor<4xi32>) -> tensor<4xi1> loc("n")
    return %0 : tensor<4xi1>
  }
}
//--- not.mlir
// CHECK: error: unsupported: node 'n': op o3.not is not defined for its element type
module attributes {o3.stage = "normalize"} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {o3.symbols = [], o3.guards = []} {
    %0 = "o3.not"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("n")
    return %0 : tensor<4xf32>
  }
}
