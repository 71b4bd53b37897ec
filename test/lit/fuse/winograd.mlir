// RUN: o3-opt --target x86-64-v4 --lower --fuse --level 3 %s | FileCheck %s
// RUN: o3-opt --target x86-64-v4 --lower --fuse --cpu-bufferize --cpu-kernel-results --level 3 %s | FileCheck %s --check-prefix=BUFFER
// Transforms, product and what follows are one kernel. Two convolutions of one x are two: each has a transform of
// its own, though they are equal; the border that both read is made before them.

// CHECK-LABEL: func.func @main
// CHECK: call @k{{.*}}_elementwise_
// CHECK-DAG: call @k0_winograd_
// CHECK-DAG: call @k1_winograd_
// CHECK-NOT: linalg.generic
// CHECK: return
// CHECK: func.func private @k0_winograd_
// CHECK: "reduction", "reduction"{{.*}}o3.kernel = "winograd_input"
// CHECK: "reduction", "reduction"{{.*}}o3.kernel = "winograd_product"
// CHECK: "reduction", "reduction"{{.*}}o3.kernel = "winograd_output"
// CHECK: arith.maximumf
// CHECK: func.func private @k1_winograd_

// Beside its result a kernel gets memory for the transformed input of some tiles: 4 tiles of 36 points and 2 blocks,
// a cache line more for each block.
// BUFFER-LABEL: func.func @main
// BUFFER: memref.alloc() {alignment = 64 : i64} : memref<4640xf32>
// BUFFER: call @k0_winograd_{{.*}}memref<4640xf32>
module {
  func.func @main(%x: tensor<1x2x8x8x16xf32>, %u: tensor<1x6x6x2x16x16xf32>, %v: tensor<2x6x6x2x16x16xf32>)
      -> (tensor<1x1x8x8x16xf32>, tensor<1x2x8x8x16xf32>) attributes {o3.symbols = [], o3.guards = []} {
    %zero = "o3.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %a = "o3.winograd_blocked"(%x, %u) {pads = array<i64: 1, 1, 1, 1>, tile = 4 : i64}
        : (tensor<1x2x8x8x16xf32>, tensor<1x6x6x2x16x16xf32>) -> tensor<1x1x8x8x16xf32> loc("a")
    %r = "o3.max"(%a, %zero) : (tensor<1x1x8x8x16xf32>, tensor<f32>) -> tensor<1x1x8x8x16xf32>
    %b = "o3.winograd_blocked"(%x, %v) {pads = array<i64: 1, 1, 1, 1>, tile = 4 : i64}
        : (tensor<1x2x8x8x16xf32>, tensor<2x6x6x2x16x16xf32>) -> tensor<1x2x8x8x16xf32> loc("b")
    return %r, %b : tensor<1x1x8x8x16xf32>, tensor<1x2x8x8x16xf32>
  }
}
