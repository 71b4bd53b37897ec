// What a launch asks of the card is checked: threads, shared memory, clusters, registers.
// RUN: split-file %s %t
// RUN: o3-opt --nvptx-limits --target hopper %t/fits.mlir
// RUN: not o3-opt --nvptx-limits --target hopper %t/threads.mlir 2>&1 | FileCheck --check-prefix=THREADS %s
// RUN: not o3-opt --nvptx-limits --target volta %t/fits.mlir 2>&1 | FileCheck --check-prefix=SHARED %s
// RUN: not o3-opt --nvptx-limits --target hopper %t/cluster.mlir 2>&1 | FileCheck --check-prefix=CLUSTER %s
// RUN: not o3-opt --nvptx-limits --target hopper %t/registers.mlir 2>&1 | FileCheck --check-prefix=REGISTERS %s
// RUN: not o3-opt --nvptx-limits --target hopper %t/beside.mlir 2>&1 | FileCheck --check-prefix=BESIDE %s

// THREADS: node 'MatMul_3': its kernel 'k' has 1056 threads a block, target 'hopper' gives 1024
// SHARED: node 'MatMul_3': its kernel 'k' has 230000 bytes of shared memory a block, target 'volta' gives 98304
// CLUSTER: node 'MatMul_3': its kernel 'k' has 16 blocks a cluster, target 'hopper' gives 8
// REGISTERS: node 'MatMul_3': its kernel 'k' has 66560 registers a multiprocessor, target 'hopper' gives 65536
// BESIDE: node 'MatMul_3': its kernel 'k' has 240000 bytes of shared memory a multiprocessor, target 'hopper' gives 233472

//--- fits.mlir
gpu.module @o3_gpu {
  llvm.mlir.global external @o3_shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.mlir.global internal @table() {addr_space = 3 : i32} : !llvm.array<2500 x f32>
  llvm.func @k() attributes {nvvm.kernel} {
    %0 = llvm.mlir.addressof @o3_shared : !llvm.ptr<3>
    %1 = llvm.mlir.addressof @table : !llvm.ptr<3>
    nvvm.setmaxregister decrease 40
    nvvm.setmaxregister increase 232
    llvm.return
  }
}
llvm.func @o3rt_gpu_launch()
func.func @main() {
  llvm.call @o3rt_gpu_launch() {o3.kernel = "k", o3.label = "MatMul_3", o3.schedule = {block = 384, cluster = 2, family = "gemm", shared = 220000}} : () -> ()
  return
}

//--- threads.mlir
gpu.module @o3_gpu {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.return
  }
}
llvm.func @o3rt_gpu_launch()
func.func @main() {
  llvm.call @o3rt_gpu_launch() {o3.kernel = "k", o3.label = "MatMul_3", o3.schedule = {block = 1056, cluster = 1, family = "gemm"}} : () -> ()
  return
}

//--- cluster.mlir
gpu.module @o3_gpu {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.return
  }
}
llvm.func @o3rt_gpu_launch()
func.func @main() {
  llvm.call @o3rt_gpu_launch() {o3.kernel = "k", o3.label = "MatMul_3", o3.schedule = {block = 128, cluster = 16, family = "gemm"}} : () -> ()
  return
}

//--- registers.mlir
gpu.module @o3_gpu {
  llvm.func @k() attributes {nvvm.kernel} {
    nvvm.setmaxregister decrease 40
    nvvm.setmaxregister increase 240
    llvm.return
  }
}
llvm.func @o3rt_gpu_launch()
func.func @main() {
  llvm.call @o3rt_gpu_launch() {o3.kernel = "k", o3.label = "MatMul_3", o3.schedule = {block = 384, cluster = 1, family = "gemm"}} : () -> ()
  return
}

//--- beside.mlir
gpu.module @o3_gpu {
  llvm.func @k() attributes {nvvm.kernel, nvvm.minctasm = 2 : i32} {
    llvm.return
  }
}
llvm.func @o3rt_gpu_launch()
func.func @main() {
  llvm.call @o3rt_gpu_launch() {o3.kernel = "k", o3.label = "MatMul_3", o3.schedule = {block = 128, cluster = 1, family = "gemm", shared = 120000}} : () -> ()
  return
}
