// RUN: o3-opt --cpu-share-numbers %s | FileCheck %s
// Factors and terms that differ become parameters; limits do not, nor is one who is not only called changed.
//
// CHECK-LABEL: func.func @main
// CHECK: %[[two:.*]] = arith.constant 2.0{{.*}} : f32
// CHECK-NEXT: call @tile_a(%[[x:.*]], %[[two]]) : (memref<16xf32>, f32) -> ()
// CHECK-NEXT: %[[three:.*]] = arith.constant 3.0{{.*}} : f32
// CHECK-NEXT: call @tile_a(%[[x]], %[[three]])
// CHECK-NEXT: call @tile_c(%[[x]]) : (memref<16xf32>) -> ()
// CHECK-NEXT: call @other_a(%[[x]]) : (memref<16xf32>) -> ()
// CHECK-NEXT: %[[again:.*]] = arith.constant 2.0{{.*}} : f32
// CHECK-NEXT: call @tile_a(%[[x]], %[[again]])
// CHECK: func.func private @tile_a(%[[y:.*]]: memref<16xf32>, %[[number:.*]]: f32)
// CHECK-DAG: %[[factor:.*]] = vector.broadcast %[[number]] : f32 to vector<16xf32>
// CHECK-DAG: %[[term:.*]] = arith.constant dense<5.0{{.*}}> : vector<16xf32>
// CHECK: arith.mulf %{{.*}}, %[[factor]]
// CHECK: arith.addf %{{.*}}, %[[term]]
// CHECK-NOT: @tile_b
// CHECK: func.func private @tile_c(%{{.*}}: memref<16xf32>)
// CHECK: arith.constant dense<6.0{{.*}}>
// CHECK: func.func private @other_a(%{{.*}}: memref<16xf32>)
// CHECK: func.func private @other_b(%{{.*}}: memref<16xf32>)

func.func @main(%x: memref<16xf32>) {
  call @tile_a(%x) : (memref<16xf32>) -> ()
  call @tile_b(%x) : (memref<16xf32>) -> ()
  call @tile_c(%x) : (memref<16xf32>) -> ()
  call @other_a(%x) : (memref<16xf32>) -> ()
  call @tile_a(%x) : (memref<16xf32>) -> ()
  %f = constant @other_b : (memref<16xf32>) -> ()
  return
}
func.func private @tile_a(%x: memref<16xf32>) {
  %i = arith.constant 0 : index
  %factor = arith.constant dense<2.0> : vector<16xf32>
  %term = arith.constant dense<5.0> : vector<16xf32>
  %limit = arith.constant dense<0.0> : vector<16xf32>
  %v = vector.load %x[%i] : memref<16xf32>, vector<16xf32>
  %s = arith.mulf %v, %factor : vector<16xf32>
  %t = arith.addf %s, %term : vector<16xf32>
  %m = arith.maximumf %t, %limit : vector<16xf32>
  vector.store %m, %x[%i] : memref<16xf32>, vector<16xf32>
  return
}
func.func private @tile_b(%x: memref<16xf32>) {
  %i = arith.constant 0 : index
  %factor = arith.constant dense<3.0> : vector<16xf32>
  %term = arith.constant dense<5.0> : vector<16xf32>
  %limit = arith.constant dense<0.0> : vector<16xf32>
  %v = vector.load %x[%i] : memref<16xf32>, vector<16xf32>
  %s = arith.mulf %v, %factor : vector<16xf32>
  %t = arith.addf %s, %term : vector<16xf32>
  %m = arith.maximumf %t, %limit : vector<16xf32>
  vector.store %m, %x[%i] : memref<16xf32>, vector<16xf32>
  return
}
func.func private @tile_c(%x: memref<16xf32>) {
  %i = arith.constant 0 : index
  %factor = arith.constant dense<3.0> : vector<16xf32>
  %term = arith.constant dense<5.0> : vector<16xf32>
  %limit = arith.constant dense<6.0> : vector<16xf32>
  %v = vector.load %x[%i] : memref<16xf32>, vector<16xf32>
  %s = arith.mulf %v, %factor : vector<16xf32>
  %t = arith.addf %s, %term : vector<16xf32>
  %m = arith.maximumf %t, %limit : vector<16xf32>
  vector.store %m, %x[%i] : memref<16xf32>, vector<16xf32>
  return
}
func.func private @other_a(%x: memref<16xf32>) {
  %i = arith.constant 0 : index
  %factor = arith.constant dense<2.0> : vector<16xf32>
  %v = vector.load %x[%i] : memref<16xf32>, vector<16xf32>
  %s = arith.mulf %v, %factor : vector<16xf32>
  vector.store %s, %x[%i] : memref<16xf32>, vector<16xf32>
  return
}
func.func private @other_b(%x: memref<16xf32>) {
  %i = arith.constant 0 : index
  %factor = arith.constant dense<3.0> : vector<16xf32>
  %v = vector.load %x[%i] : memref<16xf32>, vector<16xf32>
  %s = arith.mulf %v, %factor : vector<16xf32>
  vector.store %s, %x[%i] : memref<16xf32>, vector<16xf32>
  return
}

// Functions that call others of them stay apart: those calls are told numbers, too. Attributes of parameters stay with
// theirs.
// CHECK-LABEL: func.func private @caller_a
// CHECK: call @callee_a(%{{.*}}, %[[A:[a-z0-9_]*]]) : (memref<16xf32>, f32) -> ()
// CHECK-LABEL: func.func private @caller_b
// CHECK: call @callee_a(%{{.*}}, %[[B:[a-z0-9_]*]]) : (memref<16xf32>, f32) -> ()
// CHECK: func.func private @callee_a(%{{.*}}: memref<16xf32> {llvm.noalias}, %{{.*}}: f32) {
// CHECK-NOT: func.func private @callee_b
// CHECK-LABEL: func.func @calls
// CHECK: call @caller_a(%{{[a-z0-9]*}}) :
// CHECK: call @caller_b(%{{[a-z0-9]*}}) :
// CHECK: call @callee_a(%{{.*}}, %{{.*}}) :
func.func private @caller_a(%x: memref<16xf32>) {
  %i = arith.constant 0 : index
  %factor = arith.constant 2.0 : f32
  %v = memref.load %x[%i] : memref<16xf32>
  %s = arith.mulf %v, %factor : f32
  memref.store %s, %x[%i] : memref<16xf32>
  call @callee_a(%x) : (memref<16xf32>) -> ()
  return
}
func.func private @caller_b(%x: memref<16xf32>) {
  %i = arith.constant 0 : index
  %factor = arith.constant 3.0 : f32
  %v = memref.load %x[%i] : memref<16xf32>
  %s = arith.mulf %v, %factor : f32
  memref.store %s, %x[%i] : memref<16xf32>
  call @callee_a(%x) : (memref<16xf32>) -> ()
  return
}
func.func private @callee_a(%x: memref<16xf32> {llvm.noalias}) {
  %i = arith.constant 1 : index
  %factor = arith.constant 2.0 : f32
  %v = memref.load %x[%i] : memref<16xf32>
  %s = arith.mulf %v, %factor : f32
  memref.store %s, %x[%i] : memref<16xf32>
  return
}
func.func private @callee_b(%x: memref<16xf32> {llvm.noalias}) {
  %i = arith.constant 1 : index
  %factor = arith.constant 5.0 : f32
  %v = memref.load %x[%i] : memref<16xf32>
  %s = arith.mulf %v, %factor : f32
  memref.store %s, %x[%i] : memref<16xf32>
  return
}
func.func @calls(%x: memref<16xf32>) {
  call @caller_a(%x) : (memref<16xf32>) -> ()
  call @caller_b(%x) : (memref<16xf32>) -> ()
  call @callee_b(%x) : (memref<16xf32>) -> ()
  return
}
