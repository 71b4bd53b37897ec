// What DynamicQuantizeLSTM refuses of what its weights are quantised with, and in which words.
// RUN: split-file %s %t
// RUN: not o3-opt --normalize %t/no-scale.mlir 2>&1 | FileCheck %t/no-scale.mlir
// RUN: not o3-opt --normalize %t/no-zero-point.mlir 2>&1 | FileCheck %t/no-zero-point.mlir
// RUN: not o3-opt --normalize %t/scale-rank.mlir 2>&1 | FileCheck %t/scale-rank.mlir
// RUN: not o3-opt --normalize %t/scale-directions.mlir 2>&1 | FileCheck %t/scale-directions.mlir
// RUN: not o3-opt --normalize %t/scale-columns.mlir 2>&1 | FileCheck %t/scale-columns.mlir
// RUN: not o3-opt --normalize %t/zero-columns.mlir 2>&1 | FileCheck %t/zero-columns.mlir
// RUN: not o3-opt --normalize %t/weight-type.mlir 2>&1 | FileCheck %t/weight-type.mlir
// RUN: not o3-opt --normalize %t/scale-type.mlir 2>&1 | FileCheck %t/scale-type.mlir
// RUN: not o3-opt --normalize %t/zero-type.mlir 2>&1 | FileCheck %t/zero-type.mlir
// RUN: not o3-opt --normalize %t/input-type.mlir 2>&1 | FileCheck %t/input-type.mlir
//--- no-scale.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): input 8 is missing
module attributes {o3.stage = "import", o3.model = "no-scale", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, false, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- no-zero-point.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): input 11 is missing
module attributes {o3.stage = "import", o3.model = "no-zero-point", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- scale-rank.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): input 10 has rank 3, 1 or 2 expected
module attributes {o3.stage = "import", o3.model = "scale-rank", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1x1x24xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- scale-directions.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): dimension 0 of input 8 is 24, 1 expected
module attributes {o3.stage = "import", o3.model = "scale-directions", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<24xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- scale-columns.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): dimension 1 of input 8 is 23, 24 expected
module attributes {o3.stage = "import", o3.model = "scale-columns", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1x23xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- zero-columns.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): dimension 1 of input 11 is 6, 24 expected
module attributes {o3.stage = "import", o3.model = "zero-columns", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1x6xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- weight-type.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): input 2 is not of 8-bit integers
module attributes {o3.stage = "import", o3.model = "weight-type", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1.0> : tensor<1x6x24xf32>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- scale-type.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): input 8 is of f16, f32 expected
module attributes {o3.stage = "import", o3.model = "scale-type", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1xf16>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- zero-type.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): input 9 is of ui8, i8 expected
module attributes {o3.stage = "import", o3.model = "zero-type", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf32>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xui8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
//--- input-type.mlir
// CHECK: node 'a' (DynamicQuantizeLSTM): input 0 is of f64, f32 expected
module attributes {o3.stage = "import", o3.model = "input-type", o3.opset = {ai.onnx = 17 : i64, com.microsoft = 1 : i64}} {
  func.func @main(%x: !o3.value {o3.dims = ["", "", ""], o3.name = "x", o3.type = tensor<5x2x7xf64>}) -> (!o3.value {o3.name = "a"}) {
    %W = "o3.initializer"() {name = "W", value = dense<1> : tensor<1x7x24xi8>} : () -> !o3.value
    %R = "o3.initializer"() {name = "R", value = dense<1> : tensor<1x6x24xi8>} : () -> !o3.value
    %ws = "o3.initializer"() {name = "ws", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %wz = "o3.initializer"() {name = "wz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %rs = "o3.initializer"() {name = "rs", value = dense<1.0> : tensor<1xf32>} : () -> !o3.value
    %rz = "o3.initializer"() {name = "rz", value = dense<1> : tensor<1xi8>} : () -> !o3.value
    %a = "o3.node"(%x, %W, %R, %ws, %wz, %rs, %rz) {attrs = {hidden_size = 6 : i64}, domain = "com.microsoft", name = "a", op = "DynamicQuantizeLSTM", opset = 1 : i64, outputs = ["a"], present = [true, true, true, false, false, false, false, false, true, true, true, true]} : (!o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value, !o3.value) -> !o3.value loc("a")
    return %a : !o3.value
  }
}
