// RUN: o3-opt --target x86-64-v4 --cpu-loops %s | FileCheck %s
// In 16 lanes: the largest of each window, where the reductions carry one vector and memory is written once; and a factor of
// each channel, which is a vector, too. Elements that a body reads at places of its own are a vector where only the last
// index is that of the lane, and one number for all where none is.

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
  // CHECK-LABEL: func.func @enlarge
  func.func @enlarge(%s: !llvm.ptr, %x: memref<4x?x?x16xf32>, %g: memref<4xf32>, %y: memref<4x?x?x16xf32>) {
    %c2 = arith.constant 2 : index
    // CHECK: scf.parallel (%[[C:.*]], %[[H:.*]], %[[W:.*]]) =
    // CHECK-DAG: %[[ROW:.*]] = arith.divui %[[H]], %c2
    // CHECK-DAG: %[[COLUMN:.*]] = arith.divui %[[W]], %c2
    // CHECK-DAG: %[[P:.*]] = vector.load %{{.*}}[%[[C]], %[[ROW]], %[[COLUMN]], %c0] : memref<4x?x?x16xf32>, vector<16xf32>
    // CHECK-DAG: %[[G:.*]] = memref.load %{{.*}}[%[[C]]] : memref<4xf32>
    // CHECK: %[[GS:.*]] = vector.broadcast %[[G]] : f32 to vector<16xf32>
    // CHECK: %[[R:.*]] = arith.mulf %[[P]], %[[GS]] {{.*}} : vector<16xf32>
    // CHECK: vector.store %[[R]]
    linalg.generic {indexing_maps = [affine_map<(c, h, w, l) -> (c, h, w, l)>],
                    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%y : memref<4x?x?x16xf32>) {
    ^bb0(%o: f32):
      %c = linalg.index 0 : index
      %h = linalg.index 1 : index
      %w = linalg.index 2 : index
      %l = linalg.index 3 : index
      %i = arith.divui %h, %c2 : index
      %j = arith.divui %w, %c2 : index
      %p = memref.load %x[%c, %i, %j, %l] : memref<4x?x?x16xf32>
      %q = memref.load %g[%c] : memref<4xf32>
      %r = arith.mulf %p, %q : f32
      linalg.yield %r : f32
    }
    return
  }
  // Neighbours along the lanes do not lie beside each other, or the lanes are turned around.
  // CHECK-LABEL: func.func @apart
  // CHECK-NOT: vector.load
  // CHECK-LABEL: func.func @backwards
  // CHECK-NOT: vector.load
  func.func @apart(%s: !llvm.ptr, %x: memref<4x16xf32, strided<[64, 2]>>, %y: memref<4x16xf32>) {
    linalg.generic {indexing_maps = [affine_map<(c, l) -> (c, l)>], iterator_types = ["parallel", "parallel"]}
        outs(%y : memref<4x16xf32>) {
    ^bb0(%o: f32):
      %c = linalg.index 0 : index
      %l = linalg.index 1 : index
      %p = memref.load %x[%c, %l] : memref<4x16xf32, strided<[64, 2]>>
      linalg.yield %p : f32
    }
    return
  }
  func.func @backwards(%s: !llvm.ptr, %x: memref<4x16xf32>, %y: memref<4x16xf32>) {
    %c15 = arith.constant 15 : index
    linalg.generic {indexing_maps = [affine_map<(c, l) -> (c, l)>], iterator_types = ["parallel", "parallel"]}
        outs(%y : memref<4x16xf32>) {
    ^bb0(%o: f32):
      %c = linalg.index 0 : index
      %l = linalg.index 1 : index
      %k = arith.subi %c15, %l : index
      %p = memref.load %x[%c, %k] : memref<4x16xf32>
      linalg.yield %p : f32
    }
    return
  }
  // An op of two results is of numbers, one lane after the other.
  // CHECK-LABEL: func.func @high
  func.func @high(%s: !llvm.ptr, %y: memref<4x16xf32>, %g: memref<4xi32>) {
    // CHECK: arith.mulsi_extended {{.*}} : i32
    linalg.generic {indexing_maps = [affine_map<(c, l) -> (c, l)>], iterator_types = ["parallel", "parallel"]}
        outs(%y : memref<4x16xf32>) {
    ^bb0(%o: f32):
      %c = linalg.index 0 : index
      %q = memref.load %g[%c] : memref<4xi32>
      %low, %high = arith.mulsi_extended %q, %q : i32
      %f = arith.sitofp %high : i32 to f32
      %r = arith.addf %o, %f : f32
      linalg.yield %r : f32
    }
    return
  }
}
