// RUN: o3-opt --target hopper --nvptx-kernels %s | FileCheck %s
// A quotient that is rounded to half precision may be an approximation, but not one whose whole part is taken: 47 / 47 has
// to be 1. What is read beside a transposition comes in vectors only where vectors are written.

#all = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
module {
  func.func @main(%session: !llvm.ptr, %x: memref<4096x1024xf32>, %y: memref<4096x1024xf32>, %q: memref<4096x1024xf16>,
                  %w: memref<4096x1024xf16>, %s: memref<1000x1000xf16>, %t: memref<1000x1000xf16>, %v: memref<1000xf16>,
                  %r: memref<1002x1002xf16>, %u: memref<1002x1002xf16>, %z: memref<1002xf16>) {
    // CHECK: gpu.launch
    // CHECK: arith.divf {{.*}} fastmath<{{.*}}arcp
    linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y : memref<4096x1024xf32>, memref<4096x1024xf32>) outs(%q : memref<4096x1024xf16>) {
    ^bb0(%a: f32, %b: f32, %out: f16):
      %d = arith.divf %a, %b : f32
      %n = arith.truncf %d : f32 to f16
      linalg.yield %n : f16
    }
    // CHECK: gpu.launch
    // CHECK-NOT: arcp
    // CHECK: math.floor
    linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y : memref<4096x1024xf32>, memref<4096x1024xf32>) outs(%w : memref<4096x1024xf16>) {
    ^bb0(%a: f32, %b: f32, %out: f16):
      %d = arith.divf %a, %b : f32
      %f = math.floor %d : f32
      %n = arith.truncf %f : f32 to f16
      linalg.yield %n : f16
    }
    // CHECK: gpu.launch
    // CHECK: vector.load {{.*}} : memref<1000xf16>, vector<8xf16>
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%s : memref<1000x1000xf16>) outs(%t : memref<1000x1000xf16>) {
    ^bb0(%a: f16, %out: f16):
      %j = linalg.index 1 : index
      %b = memref.load %v[%j] : memref<1000xf16>
      %n = arith.addf %a, %b : f16
      linalg.yield %n : f16
    }
    // CHECK: gpu.launch
    // CHECK-NOT: memref<1002xf16>, vector<8xf16>
    // CHECK: return
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%r : memref<1002x1002xf16>) outs(%u : memref<1002x1002xf16>) {
    ^bb0(%a: f16, %out: f16):
      %j = linalg.index 1 : index
      %b = memref.load %z[%j] : memref<1002xf16>
      %n = arith.addf %a, %b : f16
      linalg.yield %n : f16
    }
    return
  }
}
