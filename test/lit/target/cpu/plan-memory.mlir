// RUN: o3-opt --cpu-plan-memory %s | FileCheck %s
// Two buffers that do not live at the same time share their place; three in a chain need two places.

module {
  // CHECK: llvm.func hidden @o3rt_arena(!llvm.ptr, i64) -> !llvm.ptr
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: (%[[SESSION:.*]]: !llvm.ptr, %{{.*}}: memref<16xf32>)
  // CHECK-SAME: attributes {o3.arena_bytes = 128 : i64, o3.live_bytes = 128 : i64}
  func.func @main(%x: memref<16xf32>) -> f32 {
    // CHECK: llvm.call @o3rt_arena(%[[SESSION]], %{{.*}})
    %c0 = arith.constant 0 : index
    // CHECK: memref.view {{.*}} {o3.plan = {bytes = 64 : i64, first = [[F:.*]] : i64, group = 0 : i64, last = {{.*}} : i64, offset = [[O:0|64]] : i64}}
    %a = memref.alloc() : memref<16xf32>
    linalg.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
    // CHECK: memref.view {{.*}} {o3.plan = {bytes = 64 : i64
    %b = memref.alloc() : memref<16xf32>
    linalg.copy ins(%a : memref<16xf32>) outs(%b : memref<16xf32>)
    // CHECK: memref.view {{.*}}offset = [[O]] : i64}}
    %c = memref.alloc() : memref<16xf32>
    linalg.copy ins(%b : memref<16xf32>) outs(%c : memref<16xf32>)
    %v = memref.load %c[%c0] : memref<16xf32>
    // CHECK-NOT: memref.alloc
    return %v : f32
  }
}
