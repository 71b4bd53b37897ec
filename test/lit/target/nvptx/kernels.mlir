// RUN: o3-opt --target hopper --nvptx-kernels --nvptx-outline %s | FileCheck %s
// One thread an element; long sums of few elements get a block each, whose threads halve their partial sums; a check
// writes its number and ends the thread. Equal code is one kernel.

// CHECK: o3.gpu_kernels = [{label = {{.*}}, name = "o3k_[[ADD:[a-z0-9_]*]]"}, {label = {{.*}}, name = "o3k_[[SUM:[a-z0-9_]*]]"}, {label = {{.*}}, name = "o3k_[[CHECK:[a-z0-9_]*]]"}], o3.gpu_messages = ["node 'G': too large"]
#id = affine_map<(d0) -> (d0)>
#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
module {
  // CHECK-LABEL: func.func @main
  // CHECK-COUNT-4: llvm.call @o3rt_gpu_launch
  func.func @main(%session: !llvm.ptr, %x: memref<1000xf32>, %m: memref<4x700xf32>, %y: memref<1000xf32>, %s: memref<4xf32>) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<1000xf32>)
        outs(%y : memref<1000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = arith.addf %in, %in : f32
      linalg.yield %r : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%y : memref<1000xf32>)
        outs(%x : memref<1000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = arith.addf %in, %in : f32
      linalg.yield %r : f32
    }
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%m : memref<4x700xf32>)
        outs(%s : memref<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = arith.addf %out, %in : f32
      linalg.yield %r : f32
    }
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%y : memref<1000xf32>) {
    ^bb0(%out: f32):
      %c = arith.constant 1.0 : f32
      %ok = arith.cmpf olt, %out, %c : f32
      cf.assert %ok, "node 'G': too large"
      linalg.yield %out : f32
    }
    return
  }
}
// CHECK: gpu.module @o3_gpu
// CHECK: llvm.func @o3k_[[ADD]]({{.*}}) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 256>}
// CHECK: arith.cmpi ult
// CHECK: arith.addf
// CHECK: llvm.func @o3k_[[SUM]](
// CHECK: scf.for {{.*}} iter_args
// CHECK-COUNT-9: nvvm.barrier0
// CHECK: llvm.func @o3k_[[CHECK]](
// CHECK: llvm.store
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.exit"
