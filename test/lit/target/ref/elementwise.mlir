// Scalar ops by the kind of number; half precision is computed in f32; integer division never traps.
// RUN: o3-opt --lower %s | FileCheck %s
module attributes {o3.stage = "normalize"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%h: tensor<4xf16>, %u: tensor<4xui8>, %i: tensor<4xi32>, %d: tensor<4xf64>, %s: tensor<ui8>)
      -> (tensor<4xf16>, tensor<4xui8>, tensor<4xi1>, tensor<4xi32>, tensor<4xbf16>, tensor<4xi8>)
      attributes {o3.symbols = [], o3.guards = []} {
    // CHECK: linalg.generic
    // CHECK: arith.extf %{{.*}} : f16 to f32
    // CHECK: math.tanh %{{.*}} : f32
    // CHECK: arith.truncf %{{.*}} : f32 to f16
    %0 = "o3.tanh"(%h) : (tensor<4xf16>) -> tensor<4xf16>
    // CHECK: #[[SCALAR:.*]], #{{.*}}], iterator_types
    // CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[B:.*]], %{{.*}} : i8
    // CHECK: %[[SAFE:.*]] = arith.select %[[ZERO]], %{{.*}}, %[[B]] : i8
    // CHECK: arith.divui %{{.*}}, %[[SAFE]] : i8
    %1 = "o3.div"(%u, %s) : (tensor<4xui8>, tensor<ui8>) -> tensor<4xui8>
    // CHECK: arith.cmpi ult
    %2 = "o3.less"(%u, %s) : (tensor<4xui8>, tensor<ui8>) -> tensor<4xi1>
    // CHECK: scf.for
    // CHECK: arith.muli
    %3 = "o3.pow"(%i, %i) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    // f64 to 16 bits is rounded once, through a number rounded to odd.
    // CHECK: arith.truncf %{{.*}} : f64 to f32
    // CHECK: arith.ori %{{.*}} : i32
    // CHECK: arith.truncf %{{.*}} : f32 to bf16
    %4 = "o3.cast"(%d) {to = bf16} : (tensor<4xf64>) -> tensor<4xbf16>
    // A constant of one number stands in the body as such.
    %two = "o3.constant"() {value = dense<2.0> : tensor<f64>} : () -> tensor<f64>
    // CHECK: ins(%arg3 : tensor<4xf64>)
    // CHECK: math.powf %{{.*}}, %{{.*}} : f64
    %5 = "o3.pow"(%d, %two) : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    // Through 32 bits, which vectors convert to.
    // CHECK: arith.fptosi %{{.*}} : f64 to i32
    // CHECK: arith.trunci %{{.*}} : i32 to i8
    %6 = "o3.cast"(%5) {to = i8} : (tensor<4xf64>) -> tensor<4xi8>
    return %0, %1, %2, %3, %4, %6 : tensor<4xf16>, tensor<4xui8>, tensor<4xi1>, tensor<4xi32>, tensor<4xbf16>, tensor<4xi8>
  }
}
