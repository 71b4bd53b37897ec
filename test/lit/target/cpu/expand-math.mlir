// RUN: o3-opt --cpu-expand-math %s | FileCheck %s
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: f32, %y: f64, %h: f16) -> (f32, f64, f16, f32) {
    // CHECK: %[[H:.*]] = arith.extf
    // CHECK: call @o3k_math_tanh
    %a = math.tanh %x : f32
    // CHECK: math.exp %{{.*}} : f64
    %b = math.exp %y : f64
    // CHECK: call @o3k_math_log(%[[H]]) : (f32) -> f32
    // CHECK: arith.truncf
    %c = math.log %h : f16
    // CHECK: math.sqrt
    %d = math.sqrt %x : f32
    return %a, %b, %c, %d : f32, f64, f16, f32
  }
  // CHECK-LABEL: func.func @vectors
  // CHECK: call @o3k_math_exp_x16(%{{.*}}) : (vector<16xf32>) -> vector<16xf32>
  func.func @vectors(%x: vector<16xf32>) -> vector<16xf32> {
    %y = math.exp %x : vector<16xf32>
    return %y : vector<16xf32>
  }
  // CHECK: func.func private @o3k_math_exp(%{{.*}}: f32) -> f32
  // CHECK: func.func private @o3k_math_erf
}
