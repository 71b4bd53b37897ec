// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit loops -o - | FileCheck %s
// RUN: sed -e 's/x100x3072/x8x3072/' %s >%t.few.mlir
// RUN: o3c --model %t.few.mlir --target hopper --precision fp16 -O2 --emit loops -o - | FileCheck %s --check-prefix=FEW
// RUN: o3c --model %s --target hopper --precision fp16 -O2 --emit loops -o %t.mlir --explain 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// What is best for one batch, for some and for many differs, so there is a kernel for each, and the run takes the one that is for
// as many batches as it has. The rows of all batches lie one behind the other: kernels are told how many there are, tiles reach
// from one batch into the next, and so do clusters that share sums. Tensor maps of A and of the result have as many rows.
//
// CHECK-LABEL: func.func @main
// CHECK: %[[BATCHES:.*]] = arith.divui
// CHECK: %[[ONE:.*]] = arith.cmpi ule, %[[BATCHES]], %c1{{ |_}}
// CHECK: scf.if %[[ONE]] {
// CHECK: arith.muli {{.*}}%c100_i64
// CHECK: arith.cmpi ugt
// CHECK: o3rt_fail
// CHECK: arith.ceildivui {{.*}}%c64
// CHECK: arith.muli
// CHECK-NOT: arith.minui
// CHECK: llvm.call @o3rt_gpu_launch{{.*}}batches = 1 : {{.*}}cluster = 4{{.*}}split = 4
// CHECK: } else {
// CHECK: arith.cmpi ule, %[[BATCHES]], %c16{{ |_}}
// CHECK: arith.minui
// CHECK: llvm.call @o3rt_gpu_launch{{.*}}batches = 16 : {{.*}}split = 1
// CHECK: } else {
// CHECK: arith.minui
// CHECK: llvm.call @o3rt_gpu_launch{{.*}}split = 1
//
// EXPLAIN: gemm:{{.*}} batches 1,
// EXPLAIN: gemm:{{.*}} batches 4,
// EXPLAIN: gemm:{{.*}} batches 16,
// EXPLAIN: gemm:
// EXPLAIN-NOT: batches
//
// Clusters are for a number of batches that is known to be small; blocks of the last kernel go on from tile to tile.
// FEW: arith.cmpi ule, {{.*}}, %c64{{ |_}}
// FEW: llvm.call @o3rt_gpu_launch{{.*}}cluster = 4
// FEW: } else {
// FEW: arith.minui
// FEW: llvm.call @o3rt_gpu_launch{{.*}}cluster = 1
module attributes {o3.stage = "import", o3.model = "net", o3.ir_version = 9 : i64, o3.opset = {ai.onnx = 17 : i64}} {
  func.func @main(%x: !o3.value {o3.name = "x", o3.type = tensor<?x100x3072xf32>, o3.dims = ["N", "", ""]},
                  %w: !o3.value {o3.name = "w", o3.type = tensor<3072x768xf32>, o3.dims = ["", ""]})
      -> (!o3.value {o3.name = "y"}) {
    %y = "o3.node"(%x, %w) {op = "MatMul", domain = "", opset = 17 : i64, name = "product", outputs = ["y"], attrs = {}} : (!o3.value, !o3.value) -> !o3.value
    return %y : !o3.value
  }
}
