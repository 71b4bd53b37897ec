#!/usr/bin/env python3
"""Libraries of one model beside each other, kernel by kernel: what a change of the compiler brought.

    bench/compare_libraries.py old.so new.so                     random inputs, one thread, five seconds
    bench/compare_libraries.py old.so new.so --threads 2 --seconds 20 --kernels contraction

All are loaded into one process and take turns of one run each, for the speed of a shared machine drifts by more than most changes
bring. The first line is of whole runs, the others of kernels whose kind or nodes match --kernels: ms that a tenth of the runs
stay under, of each library, and the medians of the ratios, a turn's time over the first library's in that turn. Kernels are
matched by the node that they begin with and their kind; those that not every run of every library reaches are named. O3_BUILD is the build folder.
"""

import argparse
import ctypes
import os
import re
import signal
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "numeric"))
import o3_model  # noqa: E402


class KernelInfo(ctypes.Structure):
    """o3_kernel_info_t of include/o3/model.h."""
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_char_p), ("num_nodes", ctypes.c_int32),
                ("nodes", ctypes.POINTER(ctypes.c_char_p))]


class KernelSample(ctypes.Structure):
    """o3_kernel_sample_t of include/o3/model.h."""
    _fields_ = [("calls", ctypes.c_int64), ("nanoseconds", ctypes.c_int64), ("operations", ctypes.c_double),
                ("bytes", ctypes.c_double)]


def random_inputs(model):
    """Small whole numbers where the type has no others, so that they can be indices."""
    rng = np.random.default_rng(0)
    arrays = []
    for name, dtype, shape in model.inputs:
        if any(not isinstance(size, int) for size in shape):
            raise SystemExit(f"compare_libraries: input '{name}' has sizes left open; compile with --dim or give --inputs")
        values = rng.random(shape) if dtype.kind not in "iub" else rng.integers(0, 2, shape)
        arrays.append(values.astype(dtype))
    return arrays


def checked(code):
    if code:
        raise SystemExit(f"compare_libraries: {o3_model.CODES[code]}")


class Contender:
    def __init__(self, path, inputs, threads):
        self.model = o3_model.Model(path)
        self.session = self.model.session(threads=threads)
        self.call = self.session.bind([inputs[name] for name, _, _ in self.model.inputs] if inputs
                                      else random_inputs(self.model))
        checked(self.model.api.session_profile(self.session.pointer, 1))
        self.kernels = [self.kernel(index) for index in range(self.model.info.num_kernels)]
        self.runs, self.turns = [], []
        self.call()

    def kernel(self, index):
        info = KernelInfo()
        checked(self.model.api.kernel_info(self.model.pointer, index, ctypes.byref(info)))
        first = info.nodes[0] if info.num_nodes else info.name
        return f"{info.kind.decode()} {first.decode()}"

    def turn(self):
        start = time.perf_counter()
        self.call()
        self.runs.append((time.perf_counter() - start) * 1e3)
        found, sample = {}, KernelSample()
        for index, kernel in enumerate(self.kernels):
            checked(self.model.api.session_kernel(self.session.pointer, index, ctypes.byref(sample)))
            if sample.calls:
                found[kernel] = found.get(kernel, 0) + sample.nanoseconds * 1e-6
        self.turns.append(found)


def low(times):
    return sorted(times)[len(times) // 10]


def row(columns, title):
    ratios = [statistics.median(other / first for first, other in zip(columns[0], column))
              for column in columns[1:]]
    return " ".join([*(f"{low(column):9.4f}" for column in columns), *(f"{ratio:7.3f}" for ratio in ratios), title])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="+", metavar="LIBRARY", help="the first one is what ratios are of")
    parser.add_argument("--inputs", metavar="FILE.npz", help="arrays by the names of the inputs, in place of random ones")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--kernels", default=".", metavar="REGEX", help="which to tell (all)")
    return parser.parse_args()


def main():
    options = parse()
    inputs = dict(np.load(options.inputs)) if options.inputs else None
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    contenders = [Contender(path, inputs, options.threads) for path in options.libraries]
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end or len(contenders[0].runs) < 3:
        for contender in contenders:
            contender.turn()
    print(row([contender.runs for contender in contenders], f"the whole, {len(contenders[0].runs)} turns"))
    names = list(dict.fromkeys(kernel for contender in contenders for kernel in contender.kernels))
    for name in filter(re.compile(options.kernels).search, names):
        if all(name in turn for contender in contenders for turn in contender.turns):
            print(row([[turn[name] for turn in contender.turns] for contender in contenders], name))
        else:
            print("not in all runs of all:", name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
