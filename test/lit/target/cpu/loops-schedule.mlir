// RUN: o3-opt --target x86-64-v4 --cpu-loops %s | FileCheck %s
// A schedule on the op is what the loops follow: rows of the matrix in blocks of 48, sums outside, where the pass
// would have summed along the rows.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%s: !llvm.ptr, %x: memref<500x40xf32>, %y: memref<500xf32>) {
    // CHECK-DAG: %[[BLOCK:.*]] = arith.constant 48 : index
    // CHECK-DAG: %[[COLUMNS:.*]] = arith.constant 40 : index
    // CHECK: scf.parallel (%[[FROM:.*]]) = (%{{.*}}) to (%{{.*}}) step (%[[BLOCK]])
    // CHECK: scf.for %{{.*}} = %{{.*}} to %[[COLUMNS]] step
    // CHECK: scf.for %{{.*}} = %[[FROM]] to
    // CHECK: memref.store
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                    iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<500x40xf32>) outs(%y : memref<500xf32>)
        attrs = {o3.schedule = {family = "loops", inner = 0 : i64, block = 48 : i64}} {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %a, %o : f32
      linalg.yield %r : f32
    }
    return
  }
}
