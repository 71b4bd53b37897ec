// RUN: not o3-opt --lower %s 2>&1 | FileCheck %s

// A list of more axes than a tensor has dimensions, which no pass writes, is an error and no crash.
// CHECK: o3-opt: error: internal error: pass 'lower': invalid IR:
module attributes {o3.stage = "normalize"} {
  func.func @main(%x: tensor<2x3xf32> {o3.element = f32, o3.name = "x"}) -> (tensor<2xf32> {o3.element = f32, o3.name = "y"})
      attributes {o3.guards = [], o3.symbols = []} {
    %y = "o3.reduce"(%x) {kind = "sum", axes = array<i64: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>, keepdims = false}
        : (tensor<2x3xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}
