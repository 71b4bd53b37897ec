// What old opsets do not allow, and in which words.
// RUN: split-file %s %t
// RUN: not o3-opt --normalize %t/unequal.mlir 2>&1 | FileCheck %t/unequal.mlir
// RUN: not o3-opt --normalize %t/axis.mlir 2>&1 | FileCheck %t/axis.mlir
// RUN: not o3-opt --normalize %t/larger.mlir 2>&1 | FileCheck %t/larger.mlir
// RUN: not o3-opt --normalize %t/variadic.mlir 2>&1 | FileCheck %t/variadic.mlir
// RUN: not o3-opt --normalize %t/since.mlir 2>&1 | FileCheck %t/since.mlir
// RUN: not o3-opt --normalize %t/dropout.mlir 2>&1 | FileCheck %t/dropout.mlir
// RUN: not o3-opt --normalize %t/batchnorm.mlir 2>&1 | FileCheck %t/batchnorm.mlir
// RUN: not o3-opt --normalize %t/cast.mlir 2>&1 | FileCheck %t/cast.mlir
// RUN: not o3-opt --normalize %t/split.mlir 2>&1 | FileCheck %t/split.mlir
//--- unequal.mlir
// CHECK: node 'y' (Add): shapes {{\[}}2x3] and {{\[}}3] in opset 6, without broadcast=1 they must be equal
module attributes {o3.stage = "import", o3.model = "unequal", o3.opset = {ai.onnx = 6 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>}, %b: !o3.value {o3.name = "b", o3.type = tensor<3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a, %b) {attrs = {}, domain = "", name = "y", op = "Add", opset = 6 : i64, outputs = ["y"]} : (!o3.value, !o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- axis.mlir
// CHECK: node 'y' (Mul): shapes {{\[}}2x3] and {{\[}}2] in opset 6, the second must be equal to a part of the first
module attributes {o3.stage = "import", o3.model = "axis", o3.opset = {ai.onnx = 6 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>}, %b: !o3.value {o3.name = "b", o3.type = tensor<2xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a, %b) {attrs = {broadcast = 1 : i64}, domain = "", name = "y", op = "Mul", opset = 6 : i64, outputs = ["y"]} : (!o3.value, !o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- larger.mlir
// CHECK: node 'y' (Less): shapes {{\[}}3] and {{\[}}2x3] in opset 1, the second must lie within the first from axis on
module attributes {o3.stage = "import", o3.model = "larger", o3.opset = {ai.onnx = 1 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<3xf32>}, %b: !o3.value {o3.name = "b", o3.type = tensor<2x3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a, %b) {attrs = {broadcast = 1 : i64}, domain = "", name = "y", op = "Less", opset = 1 : i64, outputs = ["y"]} : (!o3.value, !o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- variadic.mlir
// CHECK: node 'y' (Max): shapes {{\[}}2x3] and {{\[}}3] in opset 7, they must be equal before opset 8
module attributes {o3.stage = "import", o3.model = "variadic", o3.opset = {ai.onnx = 7 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>}, %b: !o3.value {o3.name = "b", o3.type = tensor<3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a, %b) {attrs = {}, domain = "", name = "y", op = "Max", opset = 7 : i64, outputs = ["y"]} : (!o3.value, !o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- since.mlir
// CHECK: node 'y' (MeanVarianceNormalization): op MeanVarianceNormalization of opset 6 is not supported, 9 or later is
module attributes {o3.stage = "import", o3.model = "since", o3.opset = {ai.onnx = 6 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a) {attrs = {}, domain = "", name = "y", op = "MeanVarianceNormalization", opset = 6 : i64, outputs = ["y"]} : (!o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- dropout.mlir
// CHECK: node 'y' (Dropout): is_test 0 with ratio 0.5 (training, in which random elements are dropped) is not supported
module attributes {o3.stage = "import", o3.model = "dropout", o3.opset = {ai.onnx = 6 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a) {attrs = {}, domain = "", name = "y", op = "Dropout", opset = 6 : i64, outputs = ["y"]} : (!o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- batchnorm.mlir
// CHECK: node 'y' (BatchNormalization): is_test 0 (statistics of the batch) with one output only, which is of test mode
module attributes {o3.stage = "import", o3.model = "batchnorm", o3.opset = {ai.onnx = 6 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>}, %b: !o3.value {o3.name = "b", o3.type = tensor<3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a, %b, %b, %b, %b) {attrs = {}, domain = "", name = "y", op = "BatchNormalization", opset = 6 : i64, outputs = ["y"]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- cast.mlir
// CHECK: node 'y' (Cast): to is 'FLOAT128', which names no element type
module attributes {o3.stage = "import", o3.model = "cast", o3.opset = {ai.onnx = 5 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a) {attrs = {to = "FLOAT128"}, domain = "", name = "y", op = "Cast", opset = 5 : i64, outputs = ["y"]} : (!o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
//--- split.mlir
// CHECK: node 'y' (Split): the attribute axis is missing, which has no default before opset 2
module attributes {o3.stage = "import", o3.model = "split", o3.opset = {ai.onnx = 1 : i64}} {
  func.func @main(%a: !o3.value {o3.name = "a", o3.type = tensor<2x3xf32>})
      -> (!o3.value {o3.name = "y", o3.type = tensor<?x?xf32>}) {
    %y = "o3.node"(%a) {attrs = {}, domain = "", name = "y", op = "Split", opset = 1 : i64, outputs = ["y"]} : (!o3.value) -> !o3.value loc("y")
    return %y : !o3.value
  }
}
