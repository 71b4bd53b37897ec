"""Kernels with faults, and the same without: the emulator has to tell them apart. LLVM IR as o3c writes it, of one block
of 64 threads; thread t leaves a float in element t of the first buffer, %out."""

import ctypes

HEAD = """target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
@o3_shared = external addrspace(3) global [0 x i8], align 128
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare i32 @llvm.nvvm.unheard.of(i32)
define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mine = getelementptr float, ptr addrspace(3) @o3_shared, i32 %t
  %to = getelementptr float, ptr addrspace(1) %out, i32 %t
  %from = getelementptr float, ptr addrspace(1) %in, i32 %t
  %far = add i32 %t, 33
  %wrapped = and i32 %far, 63
  %other = getelementptr float, ptr addrspace(3) @o3_shared, i32 %wrapped
  %first = icmp ult i32 %t, 16
"""
TAIL = "  ret void\n}\n"
BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
WRITE = "  %x = load float, ptr addrspace(1) %from\n  store float %x, ptr addrspace(3) %mine\n"
READ = "  %y = load float, ptr addrspace(3) %other\n  store float %y, ptr addrspace(1) %to\n"
COPY = ("  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %mine, ptr addrspace(1) %from)\n"
        "  call void @llvm.nvvm.cp.async.commit.group()\n")
WAIT = "  call void @llvm.nvvm.cp.async.wait.group(i32 0)\n"
GOOD, WRONG = "", "wrong numbers"


def only_first(body):
    return f"  br i1 %first, label %some, label %end\nsome:\n{body}  br label %end\nend:\n"


def moved(pointer, index, space):
    return f"  %moved = getelementptr float, ptr addrspace({space}) {pointer}, i32 {index}\n"


MMA = ('  %sums = call { float, float, float, float } asm "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, '
       '{$0, $1, $2, $3};", "=f,=f,=f,=f,r,r,r,0,1,2,3"(i32 0, i32 0, i32 0, float 0.0, float 0.0, float 0.0, float 0.0)\n')
STORE = "  store float 1.0, ptr addrspace(%d) %%moved\n"

# Name: (body, what has to be printed, or GOOD or WRONG). Lane t reads what lane t + 33 wrote.
KERNELS = {
    "barrier": (WRITE + BARRIER + READ, GOOD),
    "no barrier": (WRITE + READ, WRONG),
    "shared memory that nobody wrote": (READ, WRONG),
    "copy": (COPY + WAIT + BARRIER + READ, GOOD),
    "copy without a wait": (COPY + BARRIER + READ + WAIT, WRONG),
    "a write behind a buffer": (moved("%out", 65, 1) + STORE % 1, "beyond the end"),
    "an address of nothing": (moved("%out", 65 + 1024, 1) + STORE % 1, "nothing is at address"),
    "a write behind shared memory": (moved("@o3_shared", 64, 3) + STORE % 3, "bytes of shared memory"),
    "a barrier of half a warp": (only_first(BARRIER) + BARRIER, "lanes at barrier 0 came from two places"),
    "a barrier of too many": ("  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 96)\n", "nobody goes on"),
    "a shuffle of half a warp": (only_first("  %s = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %t, i32 0, i32 31)\n") + BARRIER,
                                 "nobody goes on"),
    "a product of half a warp": (only_first(MMA), "not a whole warp"),
    "an unknown instruction": ("  %u = call i32 @llvm.nvvm.unheard.of(i32 0)\n", "llvm.nvvm.unheard.of is not known"),
}


def launch(emulator, values):
    """The block on |values|; None when it fails. The driver is the one that this process has opened."""
    driver = ctypes.CDLL(emulator)
    word, count = ctypes.c_uint64, len(values)
    module, kernel, buffers = ctypes.c_void_p(), ctypes.c_void_p(), [word(), word()]
    data = (ctypes.c_float * count)(*values)
    for buffer in buffers:
        driver.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(4 * count + 4))
    driver.cuMemcpyHtoDAsync_v2(buffers[1], data, ctypes.c_size_t(4 * count), None)
    arguments = (ctypes.c_void_p * 2)(*map(ctypes.addressof, buffers))
    code = driver.cuModuleLoadData(ctypes.byref(module), b"//") or driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"k")
    code = code or driver.cuLaunchKernel(kernel, 1, 1, 1, count, 1, 1, 4 * count, None, arguments, None)
    driver.cuMemcpyDtoHAsync_v2(data, buffers[0], ctypes.c_size_t(4 * count), None)
    return None if code else list(data)
