// RUN: o3-opt --cpu-loop-carried %s | FileCheck %s
// RUN: o3-opt --cpu-loop-carried --cpu-weights --cpu-bufferize --cpu-deallocate --cpu-plan-memory %s | FileCheck --check-prefix=PLAN %s
// A carried tensor that is computed anew is copied over the old one: no memory is allocated in the loop.

#id = affine_map<(i) -> (i)>
#reverse = affine_map<(i) -> (15 - i)>
module {
  // CHECK-LABEL: func.func @main
  // PLAN-LABEL: func.func @main
  // PLAN: o3rt_arena
  // PLAN: scf.for
  // PLAN-NOT: o3rt_alloc
  func.func @main(%x: tensor<8x16xf32>) -> (tensor<16xf32>, tensor<8x16xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %h0 = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %ys = tensor.empty() : tensor<8x16xf32>
    // CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = {{.*}}, %[[Y:.*]] = {{.*}})
    %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %h0, %y = %ys) -> (tensor<16xf32>, tensor<8x16xf32>) {
      %xi = tensor.extract_slice %x[%i, 0] [1, 16] [1, 1] : tensor<8x16xf32> to tensor<16xf32>
      %em = tensor.empty() : tensor<16xf32>
      // CHECK: %[[NEW:.*]] = linalg.generic
      %hn = linalg.generic {indexing_maps = [#id, #reverse, #id], iterator_types = ["parallel"]}
          ins(%xi, %h : tensor<16xf32>, tensor<16xf32>) outs(%em : tensor<16xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %s = arith.addf %a, %b : f32
        linalg.yield %s : f32
      } -> tensor<16xf32>
      // CHECK: %[[IN:.*]] = tensor.insert_slice
      %y2 = tensor.insert_slice %hn into %y[%i, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<8x16xf32>
      // CHECK: %[[KEPT:.*]] = bufferization.materialize_in_destination %[[NEW]] in %[[H]]
      // CHECK: scf.yield %[[KEPT]], %[[IN]]
      scf.yield %hn, %y2 : tensor<16xf32>, tensor<8x16xf32>
    }
    return %r#0, %r#1 : tensor<16xf32>, tensor<8x16xf32>
  }
}
