// RUN: o3-opt --target hopper --nvptx-kernels %s | FileCheck %s
// Threads have 16 bytes each: a vector where rows start at multiples of one, as many groups elsewhere.

#all = affine_map<(d0, d1) -> (d0, d1)>
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%session: !llvm.ptr, %x: memref<4096x1024xf16>, %y: memref<4096x1024xf16>, %odd: memref<4097x1023xf16>,
                  %odder: memref<4097x1023xf16>) {
    // CHECK: gpu.launch
    // CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<{{.*}}>, vector<8xf16>
    // CHECK-COUNT-8: arith.maximumf
    // CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<{{.*}}>, vector<8xf16>
    // CHECK: o3.elements = 2048
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<4096x1024xf16>) outs(%y : memref<4096x1024xf16>) {
    ^bb0(%in: f16, %out: f16):
      %zero = arith.constant 0.0 : f16
      %r = arith.maximumf %in, %zero : f16
      linalg.yield %r : f16
    }
    // CHECK: gpu.launch
    // CHECK-NOT: vector
    // CHECK-COUNT-8: memref.load
    // CHECK: o3.elements = 2048
    %part = memref.subview %odd[0, 1] [4097, 1021] [1, 1] : memref<4097x1023xf16> to memref<4097x1021xf16, strided<[1023, 1], offset: 1>>
    %there = memref.subview %odder[0, 0] [4097, 1021] [1, 1] : memref<4097x1023xf16> to memref<4097x1021xf16, strided<[1023, 1]>>
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%part : memref<4097x1021xf16, strided<[1023, 1], offset: 1>>)
        outs(%there : memref<4097x1021xf16, strided<[1023, 1]>>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    }
    return
  }
}
