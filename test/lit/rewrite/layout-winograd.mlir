// RUN: o3-opt --target x86-64-v4 --layout --simplify --level 3 %s | FileCheck %s
// RUN: o3-opt --target x86-64-v4 --layout --simplify --level 2 %s | FileCheck %s --check-prefix=O2
// RUN: o3c %s --start-from rewrite --emit rewrite -O3 -q --target x86-64-v4 --hardware %S/Inputs/slow-memory.json -o - | FileCheck %s --check-prefix=SLOW
// At O3 3x3 convolutions of stride 1 are Winograd convolutions where the cost model says so: the reasons stay with
// the module.

// CHECK: o3.choices = {{.*}}"few", "winograd 4x4: 4.0x fewer multiplications{{.*}}"single", "direct: winograd 2x2 would take
// O2-NOT: winograd
// Where no cache keeps weights and memory is slow, larger ones take longer than what they save.
// SLOW: o3.choices = {{.*}}"few", "direct: winograd 2x2 would take
module {
  func.func @main(%x: tensor<1x32x16x16xf32>, %s: tensor<1x64x1x1xf32>)
      -> (tensor<1x40x16x16xf32>, tensor<1x64x1x1xf32>, tensor<1x40x8x8xf32>)
      attributes {o3.symbols = [], o3.guards = []} {
    %w = "o3.constant"() {value = dense<1.0> : tensor<40x32x3x3xf32>} : () -> tensor<40x32x3x3xf32>
    %v = "o3.constant"() {value = dense<1.0> : tensor<64x64x3x3xf32>} : () -> tensor<64x64x3x3xf32>
    %b = "o3.constant"() {value = dense<1.0> : tensor<40xf32>} : () -> tensor<40xf32>
    // CHECK: [[U:%.*]] = "o3.winograd_weights"({{.*}}) {tile = 4 : i64} : {{.*}} -> tensor<3x6x6x2x16x16xf32>
    // CHECK: "o3.winograd_blocked"({{.*}}, [[U]], {{.*}}) {{{.*}}pads = array<i64: 1, 1, 1, 1>, tile = 4 : i64} : {{.*}} -> tensor<1x3x16x16x16xf32>
    %0 = "o3.conv"(%x, %w, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 1 : i64}
        : (tensor<1x32x16x16xf32>, tensor<40x32x3x3xf32>, tensor<40xf32>) -> tensor<1x40x16x16xf32> loc("few")
    // One pixel of a tile of four or sixteen.
    // CHECK: "o3.conv_blocked"({{.*}}tensor<4x4x3x3x16x16xf32>
    %1 = "o3.conv"(%s, %v) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 1 : i64}
        : (tensor<1x64x1x1xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x1x1xf32> loc("single")
    // Windows that move by two positions.
    // CHECK: "o3.conv_blocked"({{.*}}tensor<3x2x3x3x16x16xf32>
    %2 = "o3.conv"(%x, %w) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 1 : i64}
        : (tensor<1x32x16x16xf32>, tensor<40x32x3x3xf32>) -> tensor<1x40x8x8xf32> loc("stride")
    return %0, %1, %2 : tensor<1x40x16x16xf32>, tensor<1x64x1x1xf32>, tensor<1x40x8x8xf32>
  }
}
