// RUN: o3-opt --target hopper --nvptx-kernels %s | FileCheck %s
// Rows of a table come behind the indices that name them: a thread has four vectors on their way, where others have one.

#all = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%session: !llvm.ptr, %table: memref<300x1024xf16>, %numbers: memref<4096xi64>, %y: memref<4096x1024xf16>) {
    // CHECK: gpu.launch
    // CHECK-COUNT-4: memref.load {{.*}}xi64
    // CHECK-COUNT-4: vector.load %arg1[{{.*}} {alignment = 16 : i64} : memref<300x1024xf16>, vector<8xf16>
    // CHECK-COUNT-4: vector.store {{.*}} {alignment = 16 : i64} : memref<{{.*}}>, vector<8xf16>
    // CHECK: o3.elements = 8192
    linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]}
        ins(%numbers : memref<4096xi64>) outs(%y : memref<4096x1024xf16>) {
    ^bb0(%in: i64, %out: f16):
      %row = arith.index_cast %in : i64 to index
      %column = linalg.index 1 : index
      %element = memref.load %table[%row, %column] : memref<300x1024xf16>
      linalg.yield %element : f16
    }
    return
  }
}
