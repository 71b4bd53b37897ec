// RUN: o3-opt --target hopper --nvptx-place %s | FileCheck %s
// linalg runs on the card; what the host reads is copied there first, and what it alone touches stays with it.

// CHECK: module attributes {o3.host_arguments = array<i64: 0, 1>, o3.host_results = array<i64: 0>
#id = affine_map<(d0) -> (d0)>
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: memref<8xf32>, %n: memref<1xi64>) -> memref<8xf32> {
    %c0 = arith.constant 0 : index
    // CHECK: %[[Y:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
    %y = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<8xf32>)
        outs(%y : memref<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    // CHECK: memref.load %arg1
    // CHECK: %[[M:.*]] = memref.alloc() {{.*}}o3.host{{.*}} : memref<8xf32>
    // CHECK-NEXT: memref.copy %[[Y]], %[[M]] {o3.to_host}
    // CHECK: %[[V:.*]] = memref.load %[[M]]
    // CHECK: memref.store %[[V]], %[[M]]
    // CHECK-NEXT: memref.copy %[[M]], %[[Y]] {o3.to_device}
    // CHECK-NEXT: memref.dealloc %[[M]] {o3.host}
    %i = memref.load %n[%c0] : memref<1xi64>
    %k = arith.index_cast %i : i64 to index
    %v = memref.load %y[%k] : memref<8xf32>
    memref.store %v, %y[%c0] : memref<8xf32>
    // CHECK: linalg.generic
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%y : memref<8xf32>) {
    ^bb0(%out: f32):
      %s = arith.addf %out, %out : f32
      linalg.yield %s : f32
    }
    // A function that is no kernel runs on the host.
    // CHECK: %[[M2:.*]] = memref.alloc() {{.*}}o3.host{{.*}} : memref<8xf32>
    // CHECK-NEXT: memref.copy %[[Y]], %[[M2]] {o3.to_host}
    // CHECK-NEXT: call @helper(%[[M2]])
    // CHECK-NEXT: memref.copy %[[M2]], %[[Y]] {o3.to_device}
    func.call @helper(%y) : (memref<8xf32>) -> ()
    return %y : memref<8xf32>
  }
  func.func private @helper(memref<8xf32>)
}
