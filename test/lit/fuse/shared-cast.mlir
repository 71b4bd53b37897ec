// RUN: o3-opt --target hopper --fuse --level 2 %s | FileCheck %s
// RUN: o3-opt --fuse --level 2 %s | FileCheck %s --check-prefix=CPU
// Squeeze and excitation: a mean over an image and what multiplies the image both read it in f32. Each casts it itself on a
// card, whose mean is one kernel from the cast to the narrow result; processors have the cast as a kernel of its own.
//
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor<12x96x64xf32>
// CHECK: call @k0_rows_{{.*}} -> tensor<64xf16>
// CHECK-NOT: tensor<12x96x64xf32>
// CHECK: call @{{.*}}elementwise_{{.*}} -> tensor<12x96x64xf16>
// CHECK-NEXT: return
// CPU-LABEL: func.func @main
// CPU: call @{{.*}}elementwise_{{.*}} -> tensor<12x96x64xf32>

#id = affine_map<(y, x, c) -> (y, x, c)>
#channel = affine_map<(y, x, c) -> (c)>
#all = affine_map<(c) -> (c)>

func.func @main(%x: tensor<12x96x64xf16>) -> tensor<12x96x64xf16> {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 1152.0 : f32
  %we = tensor.empty() : tensor<12x96x64xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<12x96x64xf16>) outs(%we : tensor<12x96x64xf32>) {
  ^bb0(%l: f16, %o: f32):
    %f = arith.extf %l : f16 to f32
    linalg.yield %f : f32
  } -> tensor<12x96x64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %i = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel"]} outs(%e : tensor<64xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #channel], iterator_types = ["reduction", "reduction", "parallel"]} ins(%w : tensor<12x96x64xf32>) outs(%i : tensor<64xf32>) {
  ^bb0(%l: f32, %o: f32):
    %s = arith.addf %l, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %me = tensor.empty() : tensor<64xf16>
  %mean = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%sum : tensor<64xf32>) outs(%me : tensor<64xf16>) {
  ^bb0(%l: f32, %o: f16):
    %d = arith.divf %l, %count : f32
    %h = arith.truncf %d : f32 to f16
    linalg.yield %h : f16
  } -> tensor<64xf16>
  %ye = tensor.empty() : tensor<12x96x64xf16>
  %y = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w, %mean : tensor<12x96x64xf32>, tensor<64xf16>) outs(%ye : tensor<12x96x64xf16>) {
  ^bb0(%l: f32, %r: f16, %o: f16):
    %f = arith.extf %r : f16 to f32
    %p = arith.mulf %l, %f : f32
    %h = arith.truncf %p : f32 to f16
    linalg.yield %h : f16
  } -> tensor<12x96x64xf16>
  return %y : tensor<12x96x64xf16>
}
