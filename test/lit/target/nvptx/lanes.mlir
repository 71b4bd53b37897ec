// RUN: o3-opt --target hopper --nvptx-kernels %s | FileCheck %s
// Threads have 16 bytes each: a vector where rows start at multiples of one, as many groups elsewhere. A transposition
// goes through shared memory, sums of neighbours are shared by a block's threads, a border is read through.

#all = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#columns = affine_map<(d0, d1) -> (d1)>
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%session: !llvm.ptr, %x: memref<4096x1024xf16>, %y: memref<4096x1024xf16>, %t: memref<1024x4096xf16>,
                  %s: memref<1024xf32>, %odd: memref<4097x1023xf16>, %odder: memref<4097x1023xf16>,
                  %padded: memref<4098x1026xf16>, %less: memref<4096x1024xi1>) {
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
    // CHECK-COUNT-2: vector.load {{.*}} : memref<{{.*}}>, vector<8xf16>
    // CHECK-COUNT-2: vector.store {{.*}}, 3>, vector<8xf16>
    // CHECK: nvvm.barrier0
    // CHECK-COUNT-8: vector.load {{.*}}, 3>, vector<2xf16>
    // CHECK-COUNT-2: vector.store {{.*}} : memref<{{.*}}>, vector<8xf16>
    // CHECK: o3.elements = 4096
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<4096x1024xf16>) outs(%t : memref<1024x4096xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    }
    // CHECK: gpu.launch
    // CHECK: scf.for
    // CHECK: vector.load {{.*}}, vector<[[V:[0-9]+]]xf16>
    // CHECK: nvvm.barrier0
    // CHECK: vector.store {{.*}}, vector<[[V]]xf32>
    linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4096x1024xf16>) outs(%s : memref<1024xf32>) {
    ^bb0(%in: f16, %out: f32):
      %wide = arith.extf %in : f16 to f32
      %r = arith.addf %out, %wide : f32
      linalg.yield %r : f32
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
    // CHECK: gpu.launch
    // CHECK: arith.select {{.*}} : f16
    // CHECK-NOT: gpu.launch
    %number = arith.constant 1.0 : f16
    linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%padded : memref<4098x1026xf16>) {
    ^bb0(%out: f16):
      linalg.yield %number : f16
    }
    %inside = memref.subview %padded[1, 1] [4096, 1024] [1, 1] : memref<4098x1026xf16> to memref<4096x1024xf16, strided<[1026, 1], offset: 1027>>
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : memref<4096x1024xf16>)
        outs(%inside : memref<4096x1024xf16, strided<[1026, 1], offset: 1027>>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    }
    // Booleans have a byte each.
    // CHECK: gpu.launch
    // CHECK: arith.extui {{.*}} : vector<8xi1> to vector<8xi8>
    // CHECK: vector.store {{.*}} {alignment = 8 : i64} : memref<{{.*}}i8>, vector<8xi8>
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<4096x1024xf16>) outs(%less : memref<4096x1024xi1>) {
    ^bb0(%in: f16, %out: i1):
      %zero = arith.constant 0.0 : f16
      %r = arith.cmpf olt, %in, %zero : f16
      linalg.yield %r : i1
    }
    // CHECK: gpu.launch
    // CHECK: vector.load {{.*}} {alignment = 8 : i64} : memref<{{.*}}i8>, vector<8xi8>
    // CHECK: arith.trunci {{.*}} : vector<8xi8> to vector<8xi1>
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%less : memref<4096x1024xi1>) outs(%y : memref<4096x1024xf16>) {
    ^bb0(%in: i1, %out: f16):
      %r = arith.uitofp %in : i1 to f16
      linalg.yield %r : f16
    }
    return
  }
}
