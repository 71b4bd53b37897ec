// RUN: o3-opt --cpu-last-readers %s | FileCheck %s
// Who is the last to read a tensor, and makes no more than it, comes right after who reads it before.

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x128xf32>, tensor<?xf32>) {
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
    // CHECK-NEXT: return
    %sum = call @sum(%c, %side, %e) : (tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %e2 = tensor.empty() : tensor<8x128xf32>
    %larger = call @larger(%b, %e2) : (tensor<8x64xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
    %unknown = call @unknown(%c) : (tensor<8x64xf32>) -> tensor<?xf32>
    return %sum, %side, %larger, %unknown : tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x128xf32>, tensor<?xf32>
  }
  func.func private @trunk(tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  func.func private @side(tensor<8x64xf32>, tensor<64xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  func.func private @sum(tensor<8x64xf32>, tensor<8x16xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  func.func private @larger(tensor<8x64xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  func.func private @unknown(tensor<8x64xf32>) -> tensor<?xf32>
}
