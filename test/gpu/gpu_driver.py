"""Kernels on a card: a folder of gpu_kernels' output, loaded through libcuda and launched on PyTorch's stream.

    kernel = Kernel("build/gpu/softmax_f16_256x1024")    # .json and .cubin or .ptx
    kernel.bind([x, y])                                  # tensors, by the numbers of the buffers
    kernel.launch()
"""
import ctypes
import json
import os

import torch

CUDA = ctypes.CDLL("libcuda.so.1")
DYNAMIC_SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int), ("rest", ctypes.c_char * 60)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint)]


def check(code, what):
    if code:
        text = ctypes.c_char_p()
        CUDA.cuGetErrorString(code, ctypes.byref(text))
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


class Kernel:
    def __init__(self, stem, overlap=True):
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        with open(stem + ".json", encoding="utf-8") as file:
            self.launch_info = json.load(file)
        path = next(stem + e for e in (".cubin", ".ptx") if os.path.exists(stem + e))
        with open(path, "rb") as file:
            image = file.read() + b"\0"
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        name = self.launch_info["kernel"]
        check(CUDA.cuModuleLoadData(ctypes.byref(self.module), image), f"loading {path}")
        check(CUDA.cuModuleGetFunction(ctypes.byref(self.function), self.module, name.encode()), name)
        if self.launch_info["shared"] > 48 << 10:
            check(CUDA.cuFuncSetAttribute(self.function, DYNAMIC_SHARED_LIMIT, self.launch_info["shared"]), name)
        self.attribute = LaunchAttribute(SERIALIZATION, 0, 1)
        self.overlap = overlap and self.launch_info["overlaps"]

    def bind(self, buffers):
        self.values = []
        for argument in self.launch_info["arguments"]:
            pointer = buffers[argument["buffer"]].data_ptr()
            self.values.append(encode_map(argument, pointer) if "box" in argument else ctypes.c_uint64(pointer))
        self.pointers = (ctypes.c_void_p * len(self.values))(*[ctypes.addressof(v) for v in self.values])

    def launch(self):
        info = self.launch_info
        config = LaunchConfig((ctypes.c_uint * 3)(*info["grid"]), (ctypes.c_uint * 3)(info["block"], 1, 1), info["shared"],
                              torch.cuda.current_stream().cuda_stream, ctypes.pointer(self.attribute),
                              1 if self.overlap else 0)
        check(CUDA.cuLaunchKernelEx(ctypes.byref(config), self.function, self.pointers, None), info["kernel"])

    def close(self):
        CUDA.cuModuleUnload(self.module)


def replay_time(run, launches, replays=15):
    """Microseconds of one run(), median over replays of a graph with |launches| of them."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(launches):
                run()
        graph.replay()
        times = []
        for _ in range(replays):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / launches)
    return sorted(times)[len(times) // 2]
