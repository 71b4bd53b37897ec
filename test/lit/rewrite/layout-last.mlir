// RUN: o3-opt --target hopper --layout --simplify %s | FileCheck %s
// RUN: o3-opt --target volta --layout --simplify %s | FileCheck %s
// RUN: o3-opt --target x86-64-v4 --layout --simplify %s | FileCheck %s --check-prefix=PLAIN
// On cards, convolutions in half precision and what lies between them have their channels last, as
// many as a multiple of 8; an image of few channels is packed with its border and its conversion.

// PLAIN-NOT: _last"
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<2x3x20x20xf32>) -> tensor<2x12x5x5xf16> attributes {o3.symbols = [], o3.guards = []} {
    %w1 = "o3.constant"() {value = dense<1.0> : tensor<20x3x7x7xf16>} : () -> tensor<20x3x7x7xf16>
    %b1 = "o3.constant"() {value = dense<1.0> : tensor<20xf16>} : () -> tensor<20xf16>
    %w2 = "o3.constant"() {value = dense<1.0> : tensor<20x1x3x3xf16>} : () -> tensor<20x1x3x3xf16>
    %w3 = "o3.constant"() {value = dense<1.0> : tensor<20x20x3x3xf16>} : () -> tensor<20x20x3x3xf16>
    %w4 = "o3.constant"() {value = dense<1.0> : tensor<12x5x3x3xf16>} : () -> tensor<12x5x3x3xf16>
    %zero = "o3.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %h = "o3.cast"(%x) {to = f16} : (tensor<2x3x20x20xf32>) -> tensor<2x3x20x20xf16>
    // CHECK: %[[P:.*]] = "o3.pack_last"(%arg0) {{.*}}pads = array<i64: 3, 3, 3, 3>{{.*}} (tensor<2x3x20x20xf32>) -> tensor<2x1x26x26x8xf16>
    // CHECK: %[[C:.*]] = "o3.conv_last"(%[[P]], {{.*}}pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>{{.*}} tensor<7x7x8x24xf16>, tensor<24xf16>) -> tensor<2x1x10x10x24xf16>
    %c1 = "o3.conv"(%h, %w1, %b1) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
        pads = array<i64: 3, 3, 3, 3>, group = 1 : i64}
        : (tensor<2x3x20x20xf16>, tensor<20x3x7x7xf16>, tensor<20xf16>) -> tensor<2x20x10x10xf16>
    // CHECK: %[[F:.*]] = "o3.cast"(%[[C]]) {{.*}} -> tensor<2x1x10x10x24xf32>
    // CHECK: %[[R:.*]] = "o3.max"(%[[F]], {{.*}} -> tensor<2x1x10x10x24xf32>
    // CHECK: %[[N:.*]] = "o3.cast"(%[[R]]) {{.*}} -> tensor<2x1x10x10x24xf16>
    %f1 = "o3.cast"(%c1) {to = f32} : (tensor<2x20x10x10xf16>) -> tensor<2x20x10x10xf32>
    %r1 = "o3.max"(%f1, %zero) : (tensor<2x20x10x10xf32>, tensor<f32>) -> tensor<2x20x10x10xf32>
    %h1 = "o3.cast"(%r1) {to = f16} : (tensor<2x20x10x10xf32>) -> tensor<2x20x10x10xf16>
    // CHECK: %[[M:.*]] = "o3.max_pool_last"(%[[N]]) {{.*}}pads = array<i64: 1, 1, 1, 1>{{.*}} -> tensor<2x1x5x5x24xf16>
    %m = "o3.max_pool"(%h1) {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, ceil_mode = false,
        pads = array<i64: 1, 1, 1, 1>} : (tensor<2x20x10x10xf16>) -> tensor<2x20x5x5xf16>
    // CHECK: %[[D:.*]] = "o3.depthwise_last"(%[[M]], {{.*}} tensor<3x3x24xf16>) -> tensor<2x1x5x5x24xf16>
    %d = "o3.conv"(%m, %w2) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 20 : i64}
        : (tensor<2x20x5x5xf16>, tensor<20x1x3x3xf16>) -> tensor<2x20x5x5xf16>
    // CHECK: %[[E:.*]] = "o3.conv_last"(%[[D]], {{.*}}pads = array<i64: 1, 1, 1, 1>{{.*}} tensor<3x3x24x24xf16>) -> tensor<2x1x5x5x24xf16>
    %e = "o3.conv"(%d, %w3) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 1 : i64}
        : (tensor<2x20x5x5xf16>, tensor<20x20x3x3xf16>) -> tensor<2x20x5x5xf16>
    // Groups are one, with zeros between them.
    // CHECK: "o3.pad"({{.*}}o3.fold
    // CHECK: %[[G:.*]] = "o3.conv_last"(%[[E]], {{.*}} tensor<3x3x24x16xf16>) -> tensor<2x1x5x5x16xf16>
    // CHECK: %[[T:.*]] = "o3.transpose"(%[[G]])
    // CHECK: "o3.slice"({{.*}} -> tensor<2x12x5x5xf16>
    %g = "o3.conv"(%e, %w4) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads = array<i64: 1, 1, 1, 1>, group = 4 : i64}
        : (tensor<2x20x5x5xf16>, tensor<12x5x3x3xf16>) -> tensor<2x12x5x5xf16>
    return %g : tensor<2x12x5x5xf16>
  }
}
