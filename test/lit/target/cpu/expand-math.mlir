// RUN: o3-opt --cpu-expand-math %s | FileCheck %s
// CHECK: #[[COUNT:.*]] = #llvm.loop_interleave<count = 2 : i32>
// CHECK: #[[TURNS:.*]] = #llvm.loop_annotation<interleave = #[[COUNT]]>
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
  // Only added to a number: results too small to change it need not be right.
  // CHECK-LABEL: func.func @added
  // CHECK: call @o3k_math_exp_added(
  // CHECK: call @o3k_math_exp_added_x16(
  // CHECK: call @o3k_math_exp(
  // CHECK: call @o3k_math_exp(
  func.func @added(%x: f32, %v: vector<16xf32>) -> (f32, vector<16xf32>, f32, f32, f32) {
    %one = arith.constant 1.0 : f32
    %ones = arith.constant dense<1.0> : vector<16xf32>
    %tiny = arith.constant 1.0e-33 : f32
    %a = math.exp %x : f32
    %b = arith.addf %one, %a : f32
    %c = math.exp %v : vector<16xf32>
    %d = arith.addf %c, %ones : vector<16xf32>
    %e = math.exp %x : f32
    %f = arith.addf %e, %tiny : f32
    %g = math.exp %x : f32
    %h = arith.addf %g, %one : f32
    return %b, %d, %f, %g, %h : f32, vector<16xf32>, f32, f32, f32
  }
  // Two turns of a loop are computed side by side.
  // CHECK-LABEL: func.func @loop
  // CHECK: call @o3k_math_erf
  // CHECK: } {loop_annotation = #[[TURNS]]}
  func.func @loop(%x: memref<64xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c64 step %c1 {
      %a = memref.load %x[%i] : memref<64xf32>
      %b = math.erf %a : f32
      memref.store %b, %x[%i] : memref<64xf32>
    }
    return
  }
  // CHECK: func.func private @o3k_math_exp(%{{.*}}: f32) -> f32
  // CHECK: func.func private @o3k_math_erf
}
