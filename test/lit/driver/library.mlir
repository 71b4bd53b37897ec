// What is in a library, and what is not.
// RUN: o3c %s -q -O0 -o %t.so --symbol-prefix net
// RUN: llvm-nm -D --defined-only %t.so | FileCheck --check-prefix=EXPORTS %s
// RUN: llvm-readelf -dlW %t.so | FileCheck --check-prefix=HEADERS %s
// RUN: llvm-readelf -nW %t.so | FileCheck --check-prefix=NOTES %s
// RUN: llvm-strings %t.so | FileCheck --check-prefix=STRINGS %s

// EXPORTS: T net_model
// EXPORTS-NOT: {{.}}
// HEADERS-NOT: TEXTREL
// HEADERS: GNU_RELRO
// HEADERS: GNU_STACK {{.*}} RW {{ *}}0
// HEADERS-NOT: PATH
// HEADERS: NEEDED{{.*}}libc.so.6
// HEADERS-NOT: SONAME
// HEADERS: BIND_NOW
// NOTES: GNU_BUILD_ID
// No path of the machine that compiled it, no name of a temporary file.
// STRINGS-NOT: .o3c-
// STRINGS-NOT: {{/tmp/|/home/|/work/}}
func.func @main(%x: tensor<4xf32> {o3.name = "x"}) -> (tensor<4xf32> {o3.name = "y"}) {
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
