#!/usr/bin/env python3
"""Compiled models against ONNX Runtime: time of a run, time and memory of the compiler.

    bench/compare_ort.py                      all networks of test/models, 1 and 2 threads
    bench/compare_ort.py resnet50 --threads 1 --levels 3
    bench/compare_ort.py --write              and write the tables to docs/benchmarks.md

Runs of the two alternate, so that both meet the same machine; the median of each is told. Both get the same file
and the same input, and both run a session of their own with the same number of threads. The bars of ResNet-50 are
checked: the exit status is 1 when one is not met. O3_BUILD is the build folder.
"""

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "test", "numeric"), os.path.join(ROOT, "test", "models")]

import o3_model
import test_networks

PAGE = os.path.join(ROOT, "docs", "benchmarks.md")
LEVELS = (1, 3)
MEGABYTE = 1e6
# Bars, of ResNet-50.
MAX_COMPILE_SECONDS = 30
MAX_MEMORY_FACTOR, MAX_MEMORY_EXTRA = 3, 150 * MEGABYTE  # times the model file, plus
MAX_TIME_RATIO = 6  # of ONNX Runtime's


def ort_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(calls, seconds):
    """The times of each call, which take turns for about |seconds|, at least five times."""
    for call in calls:
        call()
    times = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for kept, call in zip(times, calls):
            kept.append(timed(call))
    return times


def child_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compile_measured(path, library, level):
    """(seconds, seconds of the processor, peak bytes) of o3c; the first two differ when the machine is busy."""
    start, used = time.perf_counter(), child_seconds()
    o3_model.compile_model(path, library, level)
    return time.perf_counter() - start, child_seconds() - used, o3_model.compile_model.report["peak_rss"]


def agrees(results, expected):
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(results, expected))


def measure(name, levels, thread_counts, seconds, folder):
    """Rows (name, threads, ms at each level, their ms, runs) and the compiler's (name, level, file bytes, seconds,
    processor seconds, peak bytes)."""
    get, _, feeds = test_networks.NETWORKS[name]
    path = get()
    models, compilers, rows = [], [], []
    for level in levels:
        library = os.path.join(folder, f"{name}.O{level}.so")
        compilers.append((name, level, os.path.getsize(path), *compile_measured(path, library, level)))
        models.append(o3_model.Model(library))
    for threads in thread_counts:
        theirs = ort_session(path, threads)
        expected = theirs.run(None, feeds)
        sessions = [model.session(threads=threads) for model in models]
        for ours in sessions:
            if not agrees(ours.run_named(feeds), expected):
                raise SystemExit(f"compare_ort: {name}: the outputs differ from ONNX Runtime's; run "
                                 "test/models/run_models.py")
        calls = [ours.bind([feeds[given] for given, _, _ in models[0].inputs]) for ours in sessions]
        times = interleaved([*calls, lambda s=theirs: s.run(None, feeds)], seconds)
        medians = [statistics.median(of) * 1e3 for of in times]
        rows.append((name, threads, medians[:-1], medians[-1], len(times[0])))
    return rows, compilers


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def versions():
    o3c = subprocess.run([os.path.join(o3_model.BUILD, "bin", "o3c"), "--version"], capture_output=True, text=True,
                         check=True).stdout.strip()
    load = os.getloadavg()[0]
    return (f"{processor()}, {os.cpu_count()} CPUs, load {load:.1f} at the start; {o3c}; ONNX Runtime "
            f"{onnxruntime.__version__}; Python {platform.python_version()}; {time.strftime('%Y-%m-%d')}")


def tables(levels, rows, compilers):
    names = "".join(f" O3 at O{level}, ms |" for level in levels)
    ratios = "".join(f" ratio of O{level} |" for level in levels)
    lines = [f"| network | input | threads | ONNX Runtime, ms |{names}{ratios} runs |",
             "|-|-|-:|-:|" + "-:|" * (2 * len(levels) + 1)]
    for name, threads, ours, theirs, runs in rows:
        shape = "x".join(map(str, next(iter(test_networks.NETWORKS[name][2].values())).shape))
        cells = "".join(f" {of:.2f} |" for of in ours) + "".join(f" {of / theirs:.2f} |" for of in ours)
        lines.append(f"| {name} | {shape} | {threads} | {theirs:.2f} |{cells} {runs} |")
    lines += ["", "| network | level | model file, MB | o3c, s | of the processor, s | peak memory, MB |",
              "|-|-|-:|-:|-:|-:|"]
    for name, level, size, seconds, used, memory in compilers:
        lines.append(f"| {name} | O{level} | {size / MEGABYTE:.1f} | {seconds:.1f} | {used:.1f} | "
                     f"{memory / MEGABYTE:.0f} |")
    return "\n".join(lines)


def bars(levels, rows, compilers):
    """[(what, found, bar, unit)] for ResNet-50 at O1."""
    found = []
    for name, level, size, seconds, _, memory in compilers:
        if name == "resnet50" and level == 1:
            found.append(("time of o3c", seconds, MAX_COMPILE_SECONDS, "s"))
            found.append(("peak memory of o3c", memory / MEGABYTE,
                          (MAX_MEMORY_FACTOR * size + MAX_MEMORY_EXTRA) / MEGABYTE, "MB"))
    for name, threads, ours, theirs, _ in rows:
        if name == "resnet50" and 1 in levels:
            ratio = ours[levels.index(1)] / theirs
            found.append((f"time of a run with {threads} threads, over ONNX Runtime's", ratio, MAX_TIME_RATIO, ""))
    return found


def write_page(machine, text):
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write("# Benchmarks\n\nWritten by `bench/compare_ort.py --write`. Medians; the runs of both alternate in one "
                   f"process. A ratio below 1 means that O3 is faster.\n\n{machine}\n\n{text}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(test_networks.NETWORKS)} (default: all)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--levels", type=int, nargs="+", default=list(LEVELS), help="opt levels")
    parser.add_argument("--seconds", type=float, default=6, help="for each network and number of threads")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    machine = versions()
    print(machine, flush=True)
    rows, compilers = [], []
    with tempfile.TemporaryDirectory(prefix="o3-bench-") as folder:
        for name in options.names or test_networks.NETWORKS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            measured, compiler = measure(name, options.levels, options.threads, options.seconds, folder)
            rows += measured
            compilers += compiler
    text = tables(options.levels, rows, compilers)
    print(text)
    missed = 0
    for what, value, bar, unit in bars(options.levels, rows, compilers):
        met = value <= bar
        missed += not met
        print(f"{'PASS' if met else 'FAIL'} resnet50, {what}: {value:.1f} {unit}".rstrip() + f", at most {bar:.0f} wanted")
    if options.write:
        write_page(machine, text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
