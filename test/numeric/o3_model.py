"""Compiled models from Python: include/o3/model.h through ctypes, and o3c as a function.

    library = compile_model("net.onnx", "net.so", level=1)
    model = Model(library)
    outputs = model.session(threads=1).run([x])        # NumPy arrays, in the model's order

bfloat16 and 8-bit float arrays are those of ml_dtypes. Errors are O3Error, with the message of the model or of o3c.
"""

import ctypes
import json
import os
import signal
import subprocess

import ml_dtypes
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("O3_BUILD", os.path.join(ROOT, "build"))

MAX_RANK = 16
ABI = 3
# o3_dtype_t, which has ONNX's numbers.
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 16: ml_dtypes.bfloat16,
          17: ml_dtypes.float8_e4m3fn, 18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2,
          20: ml_dtypes.float8_e5m2fnuz}
NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items()}
CODES = {1: "invalid argument", 2: "unsupported", 3: "out of memory", 4: "run"}


class O3Error(Exception):
    """|code|: of o3_code_t or o3c's, by name."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.c_int64 * MAX_RANK), ("place", ctypes.c_int)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.c_int64 * MAX_RANK), ("symbols", ctypes.c_char_p * MAX_RANK)]


class ModelInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("target", ctypes.c_char_p), ("build_id", ctypes.c_char_p),
                ("producer", ctypes.c_char_p), ("opt_level", ctypes.c_int32), ("num_inputs", ctypes.c_int32),
                ("num_outputs", ctypes.c_int32), ("constant_bytes", ctypes.c_uint64), ("num_kernels", ctypes.c_int32)]


class SessionOptions(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int32), ("spin_us", ctypes.c_int32), ("device", ctypes.c_int32),
                ("stream", ctypes.c_void_p)]


POINTER = ctypes.c_void_p
FUNCTIONS = [
    ("model_info", None, [POINTER, ctypes.POINTER(ModelInfo)]),
    ("input_info", ctypes.c_int, [POINTER, ctypes.c_int32, ctypes.POINTER(TensorInfo)]),
    ("output_info", ctypes.c_int, [POINTER, ctypes.c_int32, ctypes.POINTER(TensorInfo)]),
    ("session_create", ctypes.c_int, [POINTER, ctypes.POINTER(SessionOptions), ctypes.POINTER(POINTER)]),
    ("session_run", ctypes.c_int, [POINTER, ctypes.POINTER(Tensor), ctypes.c_int32, ctypes.POINTER(Tensor),
                                   ctypes.c_int32]),
    ("session_error", ctypes.c_char_p, [POINTER]),
    ("session_memory", ctypes.c_size_t, [POINTER]),
    ("session_destroy", None, [POINTER]),
    ("last_error", ctypes.c_char_p, []),
    ("kernel_info", ctypes.c_int, [POINTER, ctypes.c_int32, POINTER]),
    ("session_profile", ctypes.c_int, [POINTER, ctypes.c_int32]),
    ("session_kernel", ctypes.c_int, [POINTER, ctypes.c_int32, POINTER]),
    ("session_code", ctypes.c_char_p, [POINTER]),
]


class Api(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32)] + [(name, ctypes.CFUNCTYPE(result, *args)) for name, result, args in FUNCTIONS]


class ModelHead(ctypes.Structure):
    _fields_ = [("api", ctypes.POINTER(Api)), ("compiled", POINTER)]


def compile_model(model, library, level, options=(), seconds=600):
    """Runs o3c; returns |library|. What o3c reported is in compile_model.report."""
    command = [os.path.join(BUILD, "bin", "o3c"), model, f"-O{level}", "-o", library, "--json", "--quiet", *options]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise O3Error("timeout", f"o3c took more than {seconds} s") from None
    if ended.returncode < 0:
        raise O3Error("crash", f"o3c: {signal.Signals(-ended.returncode).name}: {ended.stderr.strip()[-300:]}")
    try:
        report = json.loads(ended.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        report = {"code": "internal error", "error": ended.stderr.strip() or f"exit status {ended.returncode}"}
    if ended.returncode != 0:
        raise O3Error(report["code"], report["error"])
    compile_model.report = report
    return library


def tensor_of(array):
    """A Tensor on the data of |array|, which is C-contiguous and outlives it."""
    tensor = Tensor(data=array.ctypes.data, dtype=NUMBERS[array.dtype], rank=array.ndim)
    tensor.shape[:array.ndim] = array.shape
    return tensor


def array_of(tensor):
    """A copy of a result."""
    shape = tuple(tensor.shape[:tensor.rank])
    dtype = np.dtype(DTYPES[tensor.dtype])
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = ctypes.string_at(tensor.data, size) if size else b""
    return np.frombuffer(data, dtype).reshape(shape).copy()


class Model:
    """A library that o3c wrote. |inputs| and |outputs| are [(name, dtype, shape)], where a size is an int, the
    name of a symbol, or None."""

    def __init__(self, path, prefix="o3"):
        self.library = ctypes.CDLL(os.path.abspath(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        get = getattr(self.library, f"{prefix}_model")
        get.restype, get.argtypes = POINTER, []
        self.pointer = get()
        self.api = ctypes.cast(self.pointer, ctypes.POINTER(ModelHead)).contents.api.contents
        if self.api.abi != ABI:
            raise O3Error("unsupported", f"{path}: ABI {self.api.abi}, {ABI} is expected")
        self.info = ModelInfo()
        self.api.model_info(self.pointer, ctypes.byref(self.info))
        self.inputs = [self.tensor_info(self.api.input_info, i) for i in range(self.info.num_inputs)]
        self.outputs = [self.tensor_info(self.api.output_info, i) for i in range(self.info.num_outputs)]

    def tensor_info(self, get, index):
        info = TensorInfo()
        code = get(self.pointer, index, ctypes.byref(info))
        if code:
            raise O3Error(CODES[code], self.api.last_error().decode())
        shape = tuple(info.symbols[d].decode() if info.symbols[d] else None if info.shape[d] < 0 else info.shape[d]
                      for d in range(info.rank))
        return info.name.decode(), np.dtype(DTYPES[info.dtype]), shape

    def session(self, threads=0, spin_us=0, device=0):
        return Session(self, threads, spin_us, device)


class Session:
    def __init__(self, model, threads, spin_us, device):
        self.model, self.pointer = model, POINTER()
        options = SessionOptions(threads=threads, spin_us=spin_us, device=device)
        code = model.api.session_create(model.pointer, ctypes.byref(options), ctypes.byref(self.pointer))
        if code:
            raise O3Error(CODES[code], model.api.last_error().decode())

    def __del__(self):
        if self.pointer:
            self.model.api.session_destroy(self.pointer)

    def memory(self):
        return self.model.api.session_memory(self.pointer)

    def bind(self, inputs):
        """A function that runs the session on these arrays, which it keeps alive like the session, and returns the
        result Tensors, the session's own; for timing."""
        inputs = [np.require(array, requirements="CA") for array in inputs]
        given = (Tensor * max(1, len(inputs)))(*map(tensor_of, inputs))
        count = len(self.model.outputs)
        run, pointer, error = self.model.api.session_run, self.pointer, self.model.api.session_error

        def call(_inputs=inputs, _session=self):
            results = (Tensor * max(1, count))()
            code = run(pointer, given, len(_inputs), results, count)
            if code:
                raise O3Error(CODES[code], error(pointer).decode())
            return results

        return call

    def run(self, inputs):
        """The outputs, as new arrays, for the inputs in the model's order."""
        results = self.bind(inputs)()
        return [array_of(results[i]) for i in range(len(self.model.outputs))]

    def run_named(self, feeds):
        missing = [name for name, _, _ in self.model.inputs if name not in feeds]
        if missing:
            raise O3Error("invalid argument", f"no value for the inputs {missing}")
        return self.run([feeds[name] for name, _, _ in self.model.inputs])
