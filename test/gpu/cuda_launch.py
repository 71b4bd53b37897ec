"""Kernels as test/gpu/gpu_kernels.c writes them, launched through libcuda by the addresses of their buffers.

    kernel = Kernel("build/gpu/softmax_f16_256x1024")    # .json and .cubin or .ptx
    kernel.bind([0x7f0000000000, 0x7f0000100000])        # on the card, by the numbers of the buffers
    kernel.launch(stream)

The caller has a context; the emulator's library is loaded before this module where it is to be the card.
"""
import ctypes
import json
import os

CUDA = ctypes.CDLL("libcuda.so.1")
DYNAMIC_SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CLUSTER, SERIALIZATION = 4, 6  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
COUNTERS = 4096  # of scratch
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 3), ("rest", ctypes.c_char * 52)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint)]


def check(code, what):
    if code:
        text = ctypes.c_char_p()
        CUDA.cuGetErrorName(code, ctypes.byref(text))
        raise RuntimeError(f"{what}: {text.value.decode() if text.value else code}")


def encode_map(argument, pointer):
    rank = len(argument["sizes"])
    memory = (ctypes.c_char * 192)()
    start = -ctypes.addressof(memory) % 64
    encoded = (ctypes.c_char * 128).from_buffer(memory, start)
    u64, u32 = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    start = [ctypes.byref(encoded), argument["type"], rank, ctypes.c_void_p(pointer), u64(*argument["sizes"]),
             u64(*(argument["strides"][1:] + [0]))]
    end = [0, SWIZZLES[argument["swizzle"]], 2, 0]
    if "steps" in argument:
        pair = ctypes.c_int * 2
        code = CUDA.cuTensorMapEncodeIm2col(*start, pair(*argument["lows"]), pair(*argument["highs"]), argument["box"][0],
                                            argument["box"][1], u32(1, *argument["steps"], 1), *end)
    else:
        code = CUDA.cuTensorMapEncodeTiled(*start, u32(*argument["box"]), u32(*[1] * rank), *end)
    check(code, f"a tensor map of {argument}")
    return encoded


def read_image(stem):
    path = next((stem + e for e in (".cubin", ".ptx") if os.path.exists(stem + e)), None)
    if not path:
        return b".\0"  # the emulator has the code
    with open(path, "rb") as file:
        return file.read() + b"\0"


def make_scratch(size):
    """Memory that a kernel may use, of which the counters (o3_gpu_kernel_add_scratch) are 0; it stays until the end."""
    memory = ctypes.c_uint64()
    check(CUDA.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)), "scratch")
    zeros = (ctypes.c_int32 * COUNTERS)()
    check(CUDA.cuMemcpyHtoDAsync_v2(memory, zeros, ctypes.c_size_t(ctypes.sizeof(zeros)), None), "counters")
    check(CUDA.cuStreamSynchronize(None), "counters")
    return memory


class Kernel:
    def __init__(self, stem, overlap=True):
        with open(stem + ".json", encoding="utf-8") as file:
            self.launch_info = json.load(file)
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        name = self.launch_info["kernel"]
        check(CUDA.cuModuleLoadData(ctypes.byref(self.module), read_image(stem)), f"loading {stem}")
        check(CUDA.cuModuleGetFunction(ctypes.byref(self.function), self.module, name.encode()), name)
        if self.launch_info["shared"] > 48 << 10:
            check(CUDA.cuFuncSetAttribute(self.function, DYNAMIC_SHARED_LIMIT, self.launch_info["shared"]), name)
        triple = ctypes.c_int * 3
        attributes = [LaunchAttribute(CLUSTER, 0, triple(self.launch_info["cluster"], 1, 1))] * (self.launch_info["cluster"] > 1)
        attributes += [LaunchAttribute(SERIALIZATION, 0, triple(1, 0, 0))] * (overlap and self.launch_info["overlaps"])
        self.attributes = (LaunchAttribute * len(attributes))(*attributes)

    def bind(self, addresses):
        self.values = []
        for argument in self.launch_info["arguments"]:
            if "scratch" in argument:
                self.values.append(make_scratch(argument["scratch"]))
                continue
            pointer = addresses[argument["buffer"]]
            self.values.append(encode_map(argument, pointer) if "box" in argument else ctypes.c_uint64(pointer))
        self.pointers = (ctypes.c_void_p * len(self.values))(*[ctypes.addressof(v) for v in self.values])

    def launch(self, stream=None):
        info = self.launch_info
        config = LaunchConfig((ctypes.c_uint * 3)(*info["grid"]), (ctypes.c_uint * 3)(info["block"], 1, 1), info["shared"],
                              stream, self.attributes, len(self.attributes))
        check(CUDA.cuLaunchKernelEx(ctypes.byref(config), self.function, self.pointers, None), info["kernel"])

    def close(self):
        CUDA.cuModuleUnload(self.module)
