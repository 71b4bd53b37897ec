// RUN: o3-opt --target x86-64-v4 --cpu-loops %s | FileCheck %s
// In 16 lanes: the largest of each window, where the reductions carry one vector and memory is written once; and a factor of
// each channel, which is a vector, too.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%s: !llvm.ptr, %x: memref<4x9x9x16xf32>, %window: memref<3x3xf32>, %y: memref<4x4x4x16xf32>) {
    // CHECK: scf.parallel
    // CHECK: %[[OLD:.*]] = vector.load %{{.*}} : memref<{{.*}}>, vector<16xf32>
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[OLD]]) -> (vector<16xf32>)
    // CHECK: scf.for {{.*}} -> (vector<16xf32>)
    // CHECK: arith.maximumf {{.*}} : vector<16xf32>
    // CHECK: vector.store
    linalg.generic {indexing_maps = [affine_map<(c, h, w, l, i, j) -> (c, h * 2 + i, w * 2 + j, l)>,
                                     affine_map<(c, h, w, l, i, j) -> (i, j)>,
                                     affine_map<(c, h, w, l, i, j) -> (c, h, w, l)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%x, %window : memref<4x9x9x16xf32>, memref<3x3xf32>) outs(%y : memref<4x4x4x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %r = arith.maximumf %p, %o : f32
      linalg.yield %r : f32
    }
    return
  }
  // CHECK-LABEL: func.func @scale
  func.func @scale(%s: !llvm.ptr, %x: memref<4x9x16xf32>, %w: memref<4x16xf32>, %y: memref<4x9x16xf32>) {
    // CHECK: scf.parallel
    // CHECK: vector.load %{{.*}} : memref<{{.*}}>, vector<16xf32>
    // CHECK: vector.load %{{.*}} : memref<{{.*}}>, vector<16xf32>
    // CHECK: arith.mulf {{.*}} : vector<16xf32>
    // CHECK: vector.store
    linalg.generic {indexing_maps = [affine_map<(c, p, l) -> (c, p, l)>, affine_map<(c, p, l) -> (c, l)>,
                                     affine_map<(c, p, l) -> (c, p, l)>],
                    iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %w : memref<4x9x16xf32>, memref<4x16xf32>) outs(%y : memref<4x9x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %r = arith.mulf %p, %q : f32
      linalg.yield %r : f32
    }
    return
  }
}
