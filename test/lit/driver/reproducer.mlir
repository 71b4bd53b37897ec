// A fault of the compiler leaves the module from before the pass, with the command that shows the fault again.
// RUN: rm -rf %t && mkdir %t
// RUN: not o3c %s --start-from bufferize -o %t/out.so 2>&1 | FileCheck --check-prefix=ERROR %s
// RUN: FileCheck --check-prefix=FILE %s < %t/o3-reproducer-cpu-deallocate.mlir
// RUN: o3-opt --cpu-deallocate %t/o3-reproducer-cpu-deallocate.mlir | not o3-opt --verify-stage bufferize -
// RUN: not ls %t/out.so
// RUN: ls -A %t | FileCheck --check-prefix=LEFT %s

// ERROR: o3c: error: internal error: pass 'cpu-deallocate': op 'complex.create' (of 'complex.create') is not legal after stage bufferize, {{.*}}; reproducer: '{{.*}}/o3-reproducer-cpu-deallocate.mlir'
// FILE: // o3-opt --cpu-deallocate --level 1 --target cpu o3-reproducer-cpu-deallocate.mlir
// FILE: func.func @main
// LEFT-NOT: .o3c
// LEFT: o3-reproducer-cpu-deallocate.mlir
// LEFT-NOT: .o3c
func.func @main(%x: tensor<1xf32> {o3.name = "x"}) -> (tensor<1xf32> {o3.name = "y"}) {
  %c0 = arith.constant 0 : index
  %a = tensor.extract %x[%c0] : tensor<1xf32>
  %c = complex.create %a, %a : complex<f32>
  %n = complex.abs %c : complex<f32>
  %e = tensor.empty() : tensor<1xf32>
  %y = linalg.fill ins(%n : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  return %y : tensor<1xf32>
}
