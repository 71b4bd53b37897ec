// A module without --start-from starts behind the stage that its ops fit: here after lower.
// RUN: o3c %s --emit bufferize -o - | FileCheck %s
// RUN: not o3c %s --start-from lower -o - 2>&1 | FileCheck --check-prefix=WRONG %s

// CHECK: o3.interface = {{{.*}}name = "x"
// CHECK: func.func @main(%{{.*}}: memref<4xf32
// WRONG: o3c: error: '{{.*}}guess.mlir' cannot start stage 'lower': op 'linalg.{{.*}} is not legal after stage rewrite
func.func @main(%x: tensor<4xf32> {o3.name = "x"}) -> (tensor<4xf32> {o3.name = "y"}) {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
