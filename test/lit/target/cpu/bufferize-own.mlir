// RUN: o3-opt --cpu-bufferize %s | FileCheck %s
// RUN: o3-opt --cpu-bufferize %s | FileCheck %s --check-prefix=FILL
// What is filled and written over twice is filled twice, not copied. Ops that share an empty tensor have a memory each.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: memref.alloc() {alignment = 64 : i64}
// CHECK-NOT: memref.alloc
// FILL-COUNT-2: linalg.yield %cst
// FILL-NOT: linalg.yield %cst
//
// What overwrites its own input is no fill, and computed once.
// CHECK: func.func @computed
// CHECK: math.exp
// CHECK-NOT: math.exp
#vector = affine_map<(d0) -> (d0)>
module {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8xf32>
    %filled = linalg.generic {indexing_maps = [#vector], iterator_types = ["parallel"]} outs(%empty : tensor<8xf32>) {
    ^bb0(%out: f32):
      linalg.yield %zero : f32
    } -> tensor<8xf32>
    %a = tensor.insert_slice %x into %filled[2] [4] [1] : tensor<4xf32> into tensor<8xf32>
    %b = tensor.insert_slice %y into %filled[3] [4] [1] : tensor<4xf32> into tensor<8xf32>
    %small = tensor.empty() : tensor<4xf32>
    %n = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%small : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = arith.negf %in : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    %m = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
        ins(%n : tensor<4xf32>) outs(%small : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = math.absf %in : f32
      linalg.yield %r : f32
    } -> tensor<4xf32>
    return %a, %b, %m : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
  }
  func.func @computed(%x: tensor<8xf32>, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %empty = tensor.empty() : tensor<8xf32>
    %d = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
        ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %r = arith.negf %in : f32
      linalg.yield %r : f32
    } -> tensor<8xf32>
    %e = linalg.generic {indexing_maps = [#vector], iterator_types = ["parallel"]} outs(%d : tensor<8xf32>) {
    ^bb0(%out: f32):
      %r = math.exp %out : f32
      linalg.yield %r : f32
    } -> tensor<8xf32>
    %a = tensor.insert_slice %y into %e[2] [4] [1] : tensor<4xf32> into tensor<8xf32>
    %b = tensor.insert_slice %y into %e[3] [4] [1] : tensor<4xf32> into tensor<8xf32>
    return %a, %b : tensor<8xf32>, tensor<8xf32>
  }
}
