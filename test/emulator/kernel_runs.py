#!/usr/bin/env python3
"""Kernels of the families by themselves on the emulator, drawn (kernel_draws.py) and compared with float64.

    kernel_runs.py --target hopper --count 100          # cases of a seed that is printed; O3_SEED sets it
    kernel_runs.py --target ampere --table gemm_ attn   # those of test/gpu/kernel_cases.py whose names hold one of these

They are those of a card of one multiprocessor, or of two, as are the schedules that families choose. The measure is
the relative error in the Frobenius norm, results are full of NaN before. The last line is
"kernels: P passed, F failed, S skipped".
"""
import argparse
import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "gpu"), os.path.join(os.path.dirname(HERE), "numeric")]

import emulated
import float64_torch
import kernel_cases
import kernel_draws
import o3_model


def types():
    import ml_dtypes

    return {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32, "i64": np.int64,
            "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


# ---- Compiling ----

def compile_case(case, card, multiprocessors, folder, change):
    """FOLDER/NAME.json and .kernels, of the code that |change| makes of the kernel's; what is wrong, or None."""
    stem = os.path.join(folder, case.name)
    with open(f"{stem}.in.mlir", "w", encoding="utf-8") as file:
        file.write("module {\n" + case.text + "}")
    command = [os.path.join(o3_model.BUILD, "bin", "gpu_kernels"), card, f"{stem}.in.mlir", folder, str(multiprocessors)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()[:300]
    with open(f"{stem}.ll", encoding="utf-8") as file:
        text = change(file.read())
    with open(f"{stem}.ll", "w", encoding="utf-8") as file:
        file.write(text)
    emulated.link(f"{stem}.ll", stem)
    return None


# ---- Running ----

def draw_arrays(case, seed):
    rng, known = np.random.default_rng(seed), types()
    entries = case.arguments[0][0][0]
    arrays = []
    for shape, kind in case.arguments[:-1]:
        drawn = rng.integers(-entries, entries, shape) if kind[0] == "i" else rng.standard_normal(shape).astype(np.float32)
        arrays.append(drawn.astype(known[kind]))
    shape, kind = case.arguments[-1]
    return arrays, np.zeros(shape, known[kind])


def relative_error(case, seed, stem):
    """In a process that has entered the emulator."""
    import cuda_launch

    cuda, check = cuda_launch.CUDA, cuda_launch.check
    arrays, result = draw_arrays(case, seed)
    check(cuda.cuInit(0), "cuInit")
    addresses = [ctypes.c_uint64() for _ in case.arguments]
    for address, array in zip(addresses, [*arrays, result]):
        check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(array.nbytes)), "memory")
    for address, array in zip(addresses, arrays):
        check(cuda.cuMemcpyHtoDAsync_v2(address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), None), "a copy")
    kernel = cuda_launch.Kernel(stem)
    kernel.bind([address.value for address in addresses])
    kernel.launch()
    check(cuda.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(result.ctypes.data), addresses[-1], ctypes.c_size_t(result.nbytes), None), "a copy")
    expected = np.asarray(case.reference(float64_torch, *[float64_torch.tensor(array.astype(np.float64)) for array in arrays]))
    size = np.linalg.norm(expected)
    error = np.linalg.norm(result.astype(np.float64).reshape(expected.shape) - expected) / (size or 1)
    return float(error) if error == error else float("inf")


def error_or_why(case, seed, stem):
    """(the error, ""), or (None, what the driver said)."""
    try:
        return relative_error(case, seed, stem), ""
    except RuntimeError as error:
        return None, str(error)


def run_case(case, card, multiprocessors, seed, scratch, change=lambda text: text):
    """(passed, text): None for passed when no family takes it, or the emulator does not know an instruction."""
    folder = tempfile.mkdtemp(dir=scratch)
    try:
        what = compile_case(case, card, multiprocessors, folder, change)
        if what:
            return (None, "a kernel that no family takes") if "no fast kernel" in what else (False, what)
        stem, sm = os.path.join(folder, case.name), emulated.figures(card)["sm"]
        found, printed = emulated.run_apart(stem, sm, seed, lambda: error_or_why(case, seed, stem))
        if emulated.unknown(printed):
            return None, emulated.unknown(printed)
        error, what = found or (None, "no answer:")
        with open(f"{stem}.json", encoding="utf-8") as file:
            launch = json.load(file)
        how = f"{launch['kernel']} grid {launch['grid'][0]} cluster {launch['cluster']}"
        if error is None:
            return False, f"{what} {printed[:400]} ({how})"
        return error <= case.tolerance, f"{error:.2e} (at most {case.tolerance:.0e}) {printed[:400]} ({how})"
    finally:
        shutil.rmtree(folder)


def case_of(number, card, seed):
    """The case |number| of a seed, its multiprocessors, and the seed of its data."""
    draw = random.Random(f"{seed} {card} {number}")
    return kernel_draws.draw_case(draw, card), draw.choice([1, 1, 2]), draw.randrange(2**31)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="with --table: parts of names")
    parser.add_argument("--target", choices=emulated.CARDS, default="hopper")
    parser.add_argument("--table", action="store_true", help="the cases of kernel_cases.py instead of drawn ones")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after these")
    options = parser.parse_args()
    seed = int(os.environ.get("O3_SEED", random.SystemRandom().randrange(2**31)))
    print(f"kernels for {options.target}, O3_SEED={seed}", flush=True)
    if options.table:
        table = kernel_cases.checked() if options.target == "hopper" else kernel_cases.checked_on(options.target)
        runs = [(case, 132, zlib.crc32(case.name.encode()) + seed) for case in table if any(n in case.name for n in options.names or [""])]
    else:
        runs = (case_of(options.first + i, options.target, seed) for i in range(options.count))
    passed = failed = skipped = 0
    scratch, end = tempfile.mkdtemp(prefix="o3-kernels-"), time.monotonic() + options.seconds
    try:
        for case, multiprocessors, data in runs:
            if time.monotonic() > end:
                break
            good, text = run_case(case, options.target, multiprocessors, data, scratch)
            passed, failed, skipped = passed + (good is True), failed + (good is False), skipped + (good is None)
            print(f"{'skip' if good is None else 'ok  ' if good else 'FAIL'} {case.name} on {multiprocessors}: {text}", flush=True)
    finally:
        shutil.rmtree(scratch)
    print(f"kernels: {passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
