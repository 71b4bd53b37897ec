// RUN: o3-opt --cpu-to-llvm %s | FileCheck %s
// Reshapes of several dynamic sizes in one group, which upstream's expansion crashes on, and of sizes of 1.
module {
  // CHECK-LABEL: llvm.func @collapse
  // CHECK-NOT: unrealized_conversion_cast
  // CHECK: llvm.mul
  func.func @collapse(%a: memref<?x8x?x?xf32>) -> memref<?x8x?xf32> {
    %0 = memref.collapse_shape %a [[0], [1], [2, 3]] : memref<?x8x?x?xf32> into memref<?x8x?xf32>
    return %0 : memref<?x8x?xf32>
  }
  // CHECK-LABEL: llvm.func @expand
  func.func @expand(%a: memref<?x8x?xf32>, %i: index, %j: index, %k: index) -> memref<?x8x?x?xf32> {
    %0 = memref.expand_shape %a [[0], [1], [2, 3]] output_shape [%i, 8, %j, %k]
        : memref<?x8x?xf32> into memref<?x8x?x?xf32>
    return %0 : memref<?x8x?x?xf32>
  }
  // CHECK-LABEL: llvm.func @scalar
  func.func @scalar(%a: memref<1x1xf32>) -> memref<f32> {
    %0 = memref.collapse_shape %a [] : memref<1x1xf32> into memref<f32>
    return %0 : memref<f32>
  }
  // CHECK-LABEL: llvm.func @strided
  func.func @strided(%a: memref<4x?x1xf32, strided<[?, ?, ?], offset: ?>>)
      -> memref<4x?xf32, strided<[?, ?], offset: ?>> {
    %0 = memref.collapse_shape %a [[0], [1, 2]] : memref<4x?x1xf32, strided<[?, ?, ?], offset: ?>>
        into memref<4x?xf32, strided<[?, ?], offset: ?>>
    return %0 : memref<4x?xf32, strided<[?, ?], offset: ?>>
  }
}
