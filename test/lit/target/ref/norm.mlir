// Softmax and layer_norm are reductions along rows, in f32, and elementwise ops with their results.
// RUN: o3-opt --lower %s | FileCheck %s
module attributes {o3.stage = "normalize"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<2x4x5xbf16>, %scale: tensor<5xbf16>, %bias: tensor<4x1xbf16>)
      -> (tensor<2x4x5xbf16>, tensor<2x4x5xbf16>, tensor<2x4x5xbf16>) attributes {o3.symbols = [], o3.guards = []} {
    // CHECK: iterator_types = ["parallel", "reduction", "parallel"]} ins(%arg0 : tensor<2x4x5xbf16>) outs(%{{.*}} : tensor<2x5xf32>)
    // CHECK: arith.maximumf
    // CHECK: math.exp
    // CHECK: iterator_types = ["parallel", "reduction", "parallel"]
    // CHECK: arith.addf
    // CHECK: arith.divf
    // CHECK: arith.truncf %{{.*}} : f32 to bf16
    %0 = "o3.softmax"(%x) {axis = 1 : i64} : (tensor<2x4x5xbf16>) -> tensor<2x4x5xbf16>
    // CHECK: iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg0 : tensor<2x4x5xbf16>) outs(%{{.*}} : tensor<2xf32>)
    // CHECK: iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg0, %{{.*}} : tensor<2x4x5xbf16>, tensor<2xf32>)
    // CHECK: math.sqrt
    // CHECK: ins(%arg0, %{{.*}}, %arg1, %{{.*}}, %arg2 : tensor<2x4x5xbf16>, tensor<2xf32>, tensor<5xbf16>, tensor<2xf32>, tensor<4x1xbf16>)
    %1 = "o3.layer_norm"(%x, %scale, %bias) {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x4x5xbf16>, tensor<5xbf16>, tensor<4x1xbf16>) -> tensor<2x4x5xbf16>
    // CHECK: iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<2x4x5xbf16>) outs(%{{.*}} : tensor<2x4xf32>)
    // CHECK-NOT: arith.subf
    %2 = "o3.layer_norm"(%x, %scale) {axis = 2 : i64, epsilon = 1.0e-5 : f64, rms = true} : (tensor<2x4x5xbf16>, tensor<5xbf16>) -> tensor<2x4x5xbf16>
    return %0, %1, %2 : tensor<2x4x5xbf16>, tensor<2x4x5xbf16>, tensor<2x4x5xbf16>
  }
}
