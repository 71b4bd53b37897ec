// What converters refuse, and in which words.
// RUN: split-file %s %t
// RUN: not o3-opt --normalize %t/float8.mlir 2>&1 | FileCheck %t/float8.mlir
// RUN: not o3-opt --normalize %t/float8-add.mlir 2>&1 | FileCheck %t/float8-add.mlir
// RUN: not o3-opt --normalize %t/random.mlir 2>&1 | FileCheck %t/random.mlir
// RUN: not o3-opt --normalize %t/mod.mlir 2>&1 | FileCheck %t/mod.mlir
// RUN: not o3-opt --normalize %t/axis.mlir 2>&1 | FileCheck %t/axis.mlir
// RUN: not o3-opt --normalize %t/gelu.mlir 2>&1 | FileCheck %t/gelu.mlir
// RUN: not o3-opt --normalize %t/tile.mlir 2>&1 | FileCheck %t/tile.mlir
// RUN: not o3-opt --normalize %t/norm.mlir 2>&1 | FileCheck %t/norm.mlir
// RUN: not o3-opt --normalize %t/pad.mlir 2>&1 | FileCheck %t/pad.mlir
//--- float8.mlir
// CHECK: node 'a' (Cast): element type 24 (float8e8m0) is not supported
module attributes {o3.stage = "import", o3.model = "float8", o3.opset = {ai.onnx = 20 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf32>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf32>}) {
    %a = "o3.node"(%x) {attrs = {to = 24 : i64}, domain = "", name = "a", op = "Cast", opset = 20 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- float8-add.mlir
// CHECK: node 'a' (Add): operands of type float8e4m3fn are moved, cast and dequantised only, not computed with (o3.add)
module attributes {o3.stage = "import", o3.model = "float8", o3.opset = {ai.onnx = 20 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf8E4M3FN>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf8E4M3FN>}) {
    %a = "o3.node"(%x, %x) {attrs = {}, domain = "", name = "a", op = "Add", opset = 20 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- random.mlir
// CHECK: node 'a' (Bernoulli): a compiled model draws no random numbers: make them an input of the model
module attributes {o3.stage = "import", o3.model = "random", o3.opset = {ai.onnx = 20 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf32>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf32>}) {
    %a = "o3.node"(%x) {attrs = {}, domain = "", name = "a", op = "Bernoulli", opset = 20 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- mod.mlir
// CHECK: node 'a' (Mod): floating-point inputs with fmod 0, ONNX wants 1 for them
module attributes {o3.stage = "import", o3.model = "mod", o3.opset = {ai.onnx = 20 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf32>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf32>}) {
    %a = "o3.node"(%x, %x) {attrs = {}, domain = "", name = "a", op = "Mod", opset = 20 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- axis.mlir
// CHECK: node 'a' (Softmax): axis 2 is out of range for rank 2
module attributes {o3.stage = "import", o3.model = "axis", o3.opset = {ai.onnx = 20 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf32>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf32>}) {
    %a = "o3.node"(%x) {attrs = {axis = 2 : i64}, domain = "", name = "a", op = "Softmax", opset = 20 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- gelu.mlir
// CHECK: node 'a' (Gelu): approximate is 'erf', none or tanh expected
module attributes {o3.stage = "import", o3.model = "gelu", o3.opset = {ai.onnx = 20 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf32>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf32>}) {
    %a = "o3.node"(%x) {attrs = {approximate = "erf"}, domain = "", name = "a", op = "Gelu", opset = 20 : i64, outputs = ["a"]} : (!o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- tile.mlir
// CHECK: node 't' (Tile): its result would have more elements than can be addressed
module attributes {o3.stage = "import", o3.model = "tile", o3.opset = {ai.onnx = 13 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", ""], o3.name = "x", o3.type = tensor<2x3xf32>}) -> (!o3.value {o3.name = "t"}) {
    %n = "o3.initializer"() {name = "n", value = dense<1099511627776> : tensor<2xi64>} : () -> !o3.value
    %t = "o3.node"(%x, %n) {attrs = {}, domain = "", name = "t", op = "Tile", opset = 13 : i64, outputs = ["t"]} : (!o3.value, !o3.value) -> !o3.value loc("t")
    return %t : !o3.value
  }
}
//--- pad.mlir
// CHECK: node 't' (Pad): its result would have more elements than can be addressed
module attributes {o3.stage = "import", o3.model = "pad", o3.opset = {ai.onnx = 18 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = [""], o3.name = "x", o3.type = tensor<1xf32>}) -> (!o3.value {o3.name = "t"}) {
    %n = "o3.initializer"() {name = "n", value = dense<4611686018427387904> : tensor<2xi64>} : () -> !o3.value
    %t = "o3.node"(%x, %n) {attrs = {}, domain = "", name = "t", op = "Pad", opset = 18 : i64, outputs = ["t"]} : (!o3.value, !o3.value) -> !o3.value loc("t")
    return %t : !o3.value
  }
}
//--- norm.mlir
// CHECK: node 'a' (RMSNormalization): elements of type i32, a floating-point type expected
module attributes {o3.stage = "import", o3.model = "norm", o3.opset = {ai.onnx = 23 : i64}} {
  func.func @main(
      %x: !o3.value {o3.dims = ["N", ""], o3.name = "x", o3.type = tensor<?x8xf32>},
      %s: !o3.value {o3.dims = [""], o3.name = "s", o3.type = tensor<8xi32>})
      -> (!o3.value {o3.dims = ["", ""], o3.name = "a", o3.type = tensor<?x?xf32>}) {
    %a = "o3.node"(%x, %s) {attrs = {}, domain = "", name = "a", op = "RMSNormalization", opset = 23 : i64, outputs = ["a"]} : (!o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
