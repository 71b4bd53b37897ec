// What converters of windows, products and images refuse, and in which words.
// RUN: split-file %s %t
// RUN: not o3-opt --normalize %t/kernel.mlir 2>&1 | FileCheck %t/kernel.mlir
// RUN: not o3-opt --normalize %t/groups.mlir 2>&1 | FileCheck %t/groups.mlir
// RUN: not o3-opt --normalize %t/small.mlir 2>&1 | FileCheck %t/small.mlir
// RUN: not o3-opt --normalize %t/auto.mlir 2>&1 | FileCheck %t/auto.mlir
// RUN: not o3-opt --normalize %t/equation.mlir 2>&1 | FileCheck %t/equation.mlir
// RUN: not o3-opt --normalize %t/scales.mlir 2>&1 | FileCheck %t/scales.mlir
// RUN: not o3-opt --normalize %t/image.mlir 2>&1 | FileCheck %t/image.mlir
//--- kernel.mlir
// CHECK: node 'a' (Conv): kernel_shape entry 0 is 5 but the weights have size 3 there
module attributes {o3.stage = "import", o3.model = "kernel", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "", ""], o3.name = "x", o3.type = tensor<?x4x7x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x, %w) {attrs = {kernel_shape = array<i64: 5, 3>}, domain = "", name = "a", op = "Conv", opset = 21 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- groups.mlir
// CHECK: node 'a' (Conv): 8 channels do not make 3 groups
module attributes {o3.stage = "import", o3.model = "groups", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "", ""], o3.name = "x", o3.type = tensor<?x4x7x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x, %w) {attrs = {group = 3 : i64}, domain = "", name = "a", op = "Conv", opset = 21 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- small.mlir
// CHECK: node 'a' (MaxPool): spatial dimension 0 has padded size 7, too small for a window of 9
module attributes {o3.stage = "import", o3.model = "small", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "", ""], o3.name = "x", o3.type = tensor<?x4x7x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x) {attrs = {kernel_shape = array<i64: 9, 9>}, domain = "", name = "a", op = "MaxPool", opset = 21 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- auto.mlir
// CHECK: node 'a' (Conv): auto_pad is 'SAME'; NOTSET, SAME_UPPER, SAME_LOWER or VALID expected
module attributes {o3.stage = "import", o3.model = "auto", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "", ""], o3.name = "x", o3.type = tensor<?x4x7x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x, %w) {attrs = {auto_pad = "SAME"}, domain = "", name = "a", op = "Conv", opset = 21 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- equation.mlir
// CHECK: node 'a' (Einsum): equation 'nchw,k->n' does not have 1 terms
module attributes {o3.stage = "import", o3.model = "equation", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "", ""], o3.name = "x", o3.type = tensor<?x4x7x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x) {attrs = {equation = "nchw,k->n"}, domain = "", name = "a", op = "Einsum", opset = 21 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- scales.mlir
// CHECK: node 'a' (Resize): either scales or sizes must be given
module attributes {o3.stage = "import", o3.model = "scales", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "", ""], o3.name = "x", o3.type = tensor<?x4x7x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x) {attrs = {}, domain = "", name = "a", op = "Resize", opset = 21 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- image.mlir
// CHECK: node 'a' (ImageDecoder): compressed images are decoded outside of the model: give it the pixels
module attributes {o3.stage = "import", o3.model = "image", o3.opset = {ai.onnx = 21 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["N", "", "", ""], o3.name = "x", o3.type = tensor<?x4x7x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %w = "o3.initializer"() {name = "w", value = dense<1.0> : tensor<8x4x3x3xf32>} : () -> !o3.value
    %a = "o3.node"(%x) {attrs = {}, domain = "", name = "a", op = "ImageDecoder", opset = 21 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
