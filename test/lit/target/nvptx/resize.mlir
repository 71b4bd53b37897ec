// Linear resizing of two axes is one op of four loads on a card, and one after the other, in f32 between them, on a
// processor and where the first axis alone makes little of the result.
// RUN: o3-opt --target hopper -O2 --lower %s | FileCheck %s
// RUN: o3-opt --target x86-64-v3 -O2 --lower %s | FileCheck %s --check-prefix=CPU
module attributes {o3.stage = "normalize"} {
  // CHECK-LABEL: func.func @main
  // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x3x18x28xf32>)
  // CHECK-COUNT-4: tensor.extract %arg0[{{.*}} : tensor<1x3x9x14xf16>
  // CHECK-NOT: tensor.extract
  // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x3x18x28xf16>)
  // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x3x72x14xf32>)
  // CPU-LABEL: func.func @main
  // CPU: linalg.generic {{.*}} outs({{.*}} : tensor<1x3x18x14xf32>)
  func.func @main(%x: tensor<1x3x9x14xf16>) -> (tensor<1x3x18x28xf16>, tensor<1x3x72x112xf16>) {
    %two = "o3.constant"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %eight = "o3.constant"() {value = dense<8.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %0 = "o3.resize"(%x, %two) {axes = array<i64: 2, 3>, mode = "linear", coordinates = "half_pixel", nearest = "floor", cubic_a = -0.75 : f64, extrapolation = 0.0 : f64, exclude_outside = false, antialias = false} : (tensor<1x3x9x14xf16>, tensor<2xf32>) -> tensor<1x3x18x28xf16>
    %1 = "o3.resize"(%x, %eight) {axes = array<i64: 2, 3>, mode = "linear", coordinates = "half_pixel", nearest = "floor", cubic_a = -0.75 : f64, extrapolation = 0.0 : f64, exclude_outside = false, antialias = false} : (tensor<1x3x9x14xf16>, tensor<2xf32>) -> tensor<1x3x72x112xf16>
    return %0, %1 : tensor<1x3x18x28xf16>, tensor<1x3x72x112xf16>
  }
}
