// RUN: o3-opt --target x86-64-v4 --level 2 --cpu-divisions %s | FileCheck %s
// What a row is divided by is divided by once. An input of the kernel, and what is rounded, keep their division.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
module {
  // CHECK-LABEL: func.func private @norm
  // CHECK: arith.divf %[[X:.*]], %
  // CHECK: arith.cmpf olt
  // CHECK: arith.cmpf ogt
  // CHECK: %[[D:.*]] = arith.mulf %[[SUM:.*]], %[[S:.*]] : f32
  // CHECK: %[[R:.*]] = arith.divf %cst{{.*}}, %[[D]] : f32
  // CHECK: %[[Y:.*]] = arith.mulf %{{.*}}, %[[S]] : f32
  // CHECK: arith.mulf %[[Y]], %[[R]] : f32
  func.func private @norm(%x: memref<4x8xf32>, %given: memref<4xf32>, %y: memref<4x8xf32>) attributes {o3.kernel_kind = "rows"} {
    %s = memref.alloc() : memref<4xf32>
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4x8xf32>) outs(%s : memref<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = arith.addf %a, %o : f32
      linalg.yield %r : f32
    }
    linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %s, %given : memref<4x8xf32>, memref<4xf32>, memref<4xf32>) outs(%y : memref<4x8xf32>) {
    ^bb0(%a: f32, %d: f32, %g: f32, %o: f32):
      %p = arith.divf %a, %g : f32
      %q = arith.divf %p, %d : f32
      linalg.yield %q : f32
    }
    return
  }
  // CHECK-LABEL: func.func private @gelu
  // CHECK: arith.constant 5.000000e-01 : f32
  // CHECK-NOT: arith.divf
  func.func private @gelu(%y: memref<8xf32>) attributes {o3.kernel_kind = "elementwise"} {
    %two = arith.constant 2.0 : f32
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : memref<8xf32>) {
    ^bb0(%o: f32):
      %q = arith.divf %o, %two : f32
      %e = math.erf %q : f32
      linalg.yield %e : f32
    }
    return
  }
  // CHECK-LABEL: func.func private @after_product
  // CHECK-NOT: arith.divf
  func.func private @after_product(%y: memref<8xf32>) attributes {o3.kernel_kind = "contraction"} {
    %c = arith.constant 6.0 : f32
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : memref<8xf32>) {
    ^bb0(%o: f32):
      %q = arith.divf %o, %c : f32
      linalg.yield %q : f32
    }
    return
  }
  // CHECK-LABEL: func.func private @exact
  // CHECK: arith.divf
  func.func private @exact(%y: memref<8xf32>) attributes {o3.kernel_kind = "elementwise"} {
    %c = arith.constant 6.0 : f32
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : memref<8xf32>) {
    ^bb0(%o: f32):
      %q = arith.divf %o, %c : f32
      linalg.yield %q : f32
    }
    return
  }
  // CHECK-LABEL: func.func private @rounds
  // CHECK: arith.divf
  func.func private @rounds(%y: memref<8xf32>) attributes {o3.kernel_kind = "elementwise"} {
    %c = arith.constant 3.0 : f32
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : memref<8xf32>) {
    ^bb0(%o: f32):
      %e = math.exp %o : f32
      %q = arith.divf %e, %c : f32
      %r = math.roundeven %q : f32
      linalg.yield %r : f32
    }
    return
  }
}
