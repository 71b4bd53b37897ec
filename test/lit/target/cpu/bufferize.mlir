// RUN: o3-opt --cpu-bufferize %s | FileCheck %s
// RUN: not o3-opt --cpu-bufferize %S/Inputs/no-main.mlir 2>&1 | FileCheck --check-prefix=NOMAIN %s
// Inputs are not written to; copies and fills are generics; the concatenation is written in place.

// NOMAIN: the module has no function @main
module {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: (%{{.*}}: memref<4x8xf32>, %{{.*}}: memref<4x8xf32>) -> memref<4x16xf32>
  func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x16xf32> {
    %zero = arith.constant 0.0 : f32
    // CHECK: memref.alloc() {alignment = 64 : i64} : memref<4x8xf32>
    // CHECK-NOT: linalg.fill
    // CHECK: linalg.generic
    %z = linalg.fill ins(%zero : f32) outs(%x : tensor<4x8xf32>) -> tensor<4x8xf32>
    %c = tensor.concat dim(1) %z, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
    // CHECK: memref.subview
    // CHECK-NOT: memref.copy
    // CHECK: linalg.yield
    return %c : tensor<4x16xf32>
  }
}
