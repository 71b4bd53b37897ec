// RUN: o3-opt --cpu-last-readers %s | FileCheck %s
// Who is the last to read a tensor, and makes no more than it, comes right after who reads it before.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x128xf32>, tensor<?xf32>, tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
    %w = arith.constant dense<1.0> : tensor<64xf32>
    %e = tensor.empty() : tensor<8x64xf32>
    // CHECK: %[[A:.*]] = call @trunk(%arg0
    %a = call @trunk(%x, %e) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    // CHECK: %[[B:.*]] = call @trunk(%[[A]]
    %b = call @trunk(%a, %e) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    // CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<8x16xf32>
    // CHECK-NEXT: %[[SIDE:.*]] = call @side(%[[A]], %{{.*}}, %[[E]])
    // CHECK-NEXT: %[[C:.*]] = call @trunk(%[[B]]
    %c = call @trunk(%b, %e) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %e1 = tensor.empty() : tensor<8x16xf32>
    %side = call @side(%a, %w, %e1) : (tensor<8x64xf32>, tensor<64xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    // A larger result, one that needs another, one of a tensor that is read again, an unknown size: they stay.
    // CHECK-NEXT: call @sum(%[[C]], %[[SIDE]]
    // CHECK: call @larger(%[[B]]
    // CHECK: call @unknown(%[[C]]
    %sum = call @sum(%c, %side, %e) : (tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %e2 = tensor.empty() : tensor<8x128xf32>
    %larger = call @larger(%b, %e2) : (tensor<8x64xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
    %unknown = call @unknown(%c) : (tensor<8x64xf32>) -> tensor<?xf32>
    // Who reads a view reads the tensor: of two the first stays, the last comes right after it.
    // CHECK-NEXT: %[[P:.*]] = call @trunk(%arg0
    // CHECK-NEXT: %[[VIEW:.*]] = tensor.collapse_shape %[[P]]
    // CHECK-NEXT: call @trunk(%arg0
    // CHECK-NEXT: call @flat(%[[VIEW]]
    // CHECK-NEXT: call @side(%[[P]]
    // CHECK-NEXT: call @trunk(%arg0
    // CHECK-NEXT: return
    %p = call @trunk(%x, %e) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %view = tensor.collapse_shape %p [[0, 1]] : tensor<8x64xf32> into tensor<512xf32>
    %q = call @trunk(%x, %e) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %flat = call @flat(%view) : (tensor<512xf32>) -> tensor<8x16xf32>
    %r = call @trunk(%x, %e) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %whole = call @side(%p, %w, %e1) : (tensor<8x64xf32>, tensor<64xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %sum, %side, %larger, %unknown, %r, %whole, %flat : tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x128xf32>, tensor<?xf32>, tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x16xf32>
  }
  func.func private @trunk(tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  func.func private @side(tensor<8x64xf32>, tensor<64xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  func.func private @sum(tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  func.func private @larger(tensor<8x64xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  func.func private @flat(tensor<512xf32>) -> tensor<8x16xf32>
  func.func private @unknown(tensor<8x64xf32>) -> tensor<?xf32>
}
