// A pool is one op that loads what its window covers, marked with its window and the positions that a mean is over; of
// sizes known only at run time, of sums of more dimensions and on processors it has a border that is made.
// RUN: o3-opt --target hopper -O2 --lower %s | FileCheck %s
// RUN: o3-opt --target x86-64-v3 -O2 --lower %s | FileCheck %s --check-prefix=CPU
// CPU-NOT: o3.kernel = "pool"
module attributes {o3.stage = "normalize"} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<2x5x15x17xf16>, %l: tensor<2x1x15x17x24xf32>, %v: tensor<2x5x9xf16>)
      -> (tensor<2x5x8x9xf16>, tensor<2x5x8x9xf16>, tensor<2x1x15x17x24xf32>, tensor<2x5x4xf16>) {
    // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<2x5x8x9xf16>) attrs = {o3.kernel = "pool", o3.pool = array<i64: 0, 0, 0, 15, 17>, o3.window = array<i64: 3, 3, 2, 2, 1, 1, 1, 1>}
    // CHECK-COUNT-9: arith.maximumf
    %0 = "o3.max_pool"(%x) {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, ceil_mode = false, pads = array<i64: 1, 1, 1, 1>} : (tensor<2x5x15x17xf16>) -> tensor<2x5x8x9xf16>
    // CHECK: linalg.generic {{.*}} o3.pool = array<i64: 1, -1, -1, 16, 18>
    // CHECK-COUNT-9: arith.addf {{.*}} : f32
    // CHECK: arith.divf
    %1 = "o3.avg_pool"(%x) {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, ceil_mode = false, count_include_pad = true, pads = array<i64: 1, 1, 1, 1>} : (tensor<2x5x15x17xf16>) -> tensor<2x5x8x9xf16>
    // CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<2x1x15x17x24xf32>) attrs = {o3.kernel = "pool", o3.pool = array<i64: 1, 0, 0, 15, 17>, o3.window = array<i64: 3, 3, 1, 1, 1, 1, 1, 1>}
    %2 = "o3.avg_pool"(%l) {kernel = array<i64: 3, 3, 1>, strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, ceil_mode = false, count_include_pad = false, pads = array<i64: 1, 1, 0, 1, 1, 0>} : (tensor<2x1x15x17x24xf32>) -> tensor<2x1x15x17x24xf32>
    // CHECK: o3.kernel = "max_pool"
    %3 = "o3.max_pool"(%v) {kernel = array<i64: 3>, strides = array<i64: 2>, dilations = array<i64: 1>, ceil_mode = false, pads = array<i64: 0, 0>} : (tensor<2x5x9xf16>) -> tensor<2x5x4xf16>
    return %0, %1, %2, %3 : tensor<2x5x8x9xf16>, tensor<2x5x8x9xf16>, tensor<2x1x15x17x24xf32>, tensor<2x5x4xf16>
  }
}
