// RUN: o3-opt --target x86-64-v4 --cpu-loops %s | FileCheck %s
// RUN: o3-opt --cpu-reference-loops -O0 %s | FileCheck --check-prefix=O0 %s

// O0-LABEL: func.func @main
// O0-NOT: linalg
// O0-NOT: fastmath<{{.*}}contract
// O0: scf.for
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%s: !llvm.ptr, %a: memref<4x8x500xf32>, %b: memref<4x8x500xf32>, %r: memref<40x50xf32>,
                  %rows: memref<40xf32>, %columns: memref<50xf32>, %t: memref<500x400xf32>, %u: memref<400x500xf32>) {
    // Elementwise: all dims are one, cut into blocks.
    // CHECK: scf.parallel (%[[I:.*]]) = (%c0) to (%c16000) step (%c2048)
    // CHECK: scf.for
    // CHECK: math.absf
    // CHECK-NOT: scf.for
    linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                    iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a : memref<4x8x500xf32>) outs(%b : memref<4x8x500xf32>) {
    ^bb0(%p: f32, %o: f32):
      %q = math.absf %p : f32
      linalg.yield %q : f32
    }
    // Rows: the sum stays in a register.
    // CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c40)
    // CHECK: scf.for {{.*}} iter_args
    // CHECK: arith.addf {{.*}} fastmath<reassoc,contract>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                    iterator_types = ["parallel", "reduction"]}
        ins(%r : memref<40x50xf32>) outs(%rows : memref<40xf32>) {
    ^bb0(%p: f32, %o: f32):
      %q = arith.addf %p, %o : f32
      linalg.yield %q : f32
    }
    // Columns: the reduction goes around the contiguous dim.
    // CHECK: scf.for %{{.*}} = %c0 to %c40
    // CHECK: scf.for %{{.*}} = %c0 to %c50
    // CHECK: memref.store
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
                    iterator_types = ["reduction", "parallel"]}
        ins(%r : memref<40x50xf32>) outs(%columns : memref<50xf32>) {
    ^bb0(%p: f32, %o: f32):
      %q = arith.addf %p, %o : f32
      linalg.yield %q : f32
    }
    // A transposition is tiled.
    // CHECK: scf.parallel (%{{.*}}, %{{.*}}) = (%c0, %c0) to (%c400, %c500) step (%c32, %c16)
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                    iterator_types = ["parallel", "parallel"]}
        ins(%t : memref<500x400xf32>) outs(%u : memref<400x500xf32>) {
    ^bb0(%p: f32, %o: f32):
      linalg.yield %p : f32
    }
    return
  }
}
