// RUN: o3c %s --start-from rewrite -O2 -q --target x86-64-v3 --print-ir-before=cpu-outline --emit loops -o %t.mlir 2>&1 | FileCheck %s
// Rows of two dims, one of which is 1, are one dim of tasks: canonicalization drops such a dim and the loop's o3.work
// with it, and then the tasks seem too small for a second thread.

// CHECK: scf.parallel
// CHECK-NOT: scf.parallel
// CHECK: scf.reduce
// CHECK-NEXT: } {o3.work = 65536 : i64}
module attributes {o3.stage = "normalize"} {
  func.func @main(%x: tensor<1x128x256xf32> {o3.name = "x"}) -> (tensor<1x128x256xf32> {o3.name = "y"}) attributes {o3.symbols = [], o3.guards = []} {
    %w = "o3.constant"() {value = dense<0.5> : tensor<256x256xf32>} : () -> tensor<256x256xf32>
    %y = "o3.matmul"(%x, %w) : (tensor<1x128x256xf32>, tensor<256x256xf32>) -> tensor<1x128x256xf32>
    return %y : tensor<1x128x256xf32>
  }
}
