// RUN: o3-opt --cpu-to-llvm %s | FileCheck %s
// Half precision never reaches LLVM in a form that would call compiler-rt; maxima are intrinsics.
module {
  // CHECK-LABEL: llvm.func @f
  // CHECK-NOT: llvm.fptrunc {{.*}} : f64 to bf16
  // CHECK-NOT: llvm.fptrunc {{.*}} : f32 to bf16
  // CHECK: llvm.return
  func.func @f(%x: f64, %y: bf16, %i: i64) -> (bf16, bf16, bf16) {
    %a = arith.truncf %x : f64 to bf16
    %b = arith.addf %a, %y : bf16
    %c = arith.sitofp %i : i64 to bf16
    return %a, %b, %c : bf16, bf16, bf16
  }
  // CHECK-LABEL: llvm.func @g
  // CHECK: llvm.intr.maximum
  // CHECK: llvm.call @asinhf
  func.func @g(%x: f32, %y: f32) -> f32 {
    %a = arith.maximumf %x, %y : f32
    %b = math.asinh %a : f32
    return %b : f32
  }
  // The sign of a zero that is open stays so.
  // CHECK-LABEL: llvm.func @open
  // CHECK: llvm.intr.maximum({{.*}}) {fastmathFlags = #llvm.fastmath<nsz>}
  func.func @open(%x: f32, %y: f32) -> f32 {
    %a = arith.maximumf %x, %y fastmath<reassoc,nsz,contract> : f32
    return %a : f32
  }
  // Booleans are bytes in memory.
  // CHECK-LABEL: llvm.func @h
  // CHECK: llvm.load %{{.*}} : !llvm.ptr -> i8
  // CHECK: llvm.trunc
  // CHECK: llvm.zext
  // CHECK: llvm.store %{{.*}} : i8, !llvm.ptr
  func.func @h(%x: memref<4xi1>, %y: memref<4xi1>, %c: i1, %i: index) {
    %a = memref.load %x[%i] : memref<4xi1>
    %b = arith.andi %a, %c : i1
    memref.store %b, %y[%i] : memref<4xi1>
    return
  }
}
