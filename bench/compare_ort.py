#!/usr/bin/env python3
"""Compiled models against ONNX Runtime: time of a run, time and memory of the compiler.

    bench/compare_ort.py                      all networks of test/models, 1 and 2 threads
    bench/compare_ort.py resnet50 --threads 1
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
LEVEL = 1
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


def compile_measured(path, library):
    """(seconds, seconds of the processor, peak bytes) of o3c; the first two differ when the machine is busy."""
    start, used = time.perf_counter(), child_seconds()
    o3_model.compile_model(path, library, LEVEL)
    return time.perf_counter() - start, child_seconds() - used, o3_model.compile_model.report["peak_rss"]


def agrees(results, expected):
    return all(np.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(results, expected))


def measure(name, thread_counts, seconds, folder):
    """Rows (name, threads, our ms, their ms, runs) and the compiler's (name, file bytes, seconds,
    processor seconds, peak bytes)."""
    get, _, feeds = test_networks.NETWORKS[name]
    path = get()
    library = os.path.join(folder, f"{name}.so")
    compiler = (name, os.path.getsize(path), *compile_measured(path, library))
    model = o3_model.Model(library)
    rows = []
    for threads in thread_counts:
        ours, theirs = model.session(threads=threads), ort_session(path, threads)
        if not agrees(ours.run_named(feeds), theirs.run(None, feeds)):
            raise SystemExit(f"compare_ort: {name}: the outputs differ from ONNX Runtime's; run test/models/run_models.py")
        call = ours.bind([feeds[given] for given, _, _ in model.inputs])
        ours_times, their_times = interleaved([call, lambda s=theirs: s.run(None, feeds)], seconds)
        rows.append((name, threads, statistics.median(ours_times) * 1e3, statistics.median(their_times) * 1e3,
                     len(ours_times)))
    return rows, compiler


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def versions():
    o3c = subprocess.run([os.path.join(o3_model.BUILD, "bin", "o3c"), "--version"], capture_output=True, text=True,
                         check=True).stdout.strip()
    load = os.getloadavg()[0]
    return (f"{processor()}, {os.cpu_count()} CPUs, load {load:.1f} at the start; {o3c}; ONNX Runtime "
            f"{onnxruntime.__version__}; Python {platform.python_version()}; {time.strftime('%Y-%m-%d')}")


def tables(rows, compilers):
    lines = ["| network | input | threads | O3 at O1, ms | ONNX Runtime, ms | ratio | runs |", "|-|-|-:|-:|-:|-:|-:|"]
    for name, threads, ours, theirs, runs in rows:
        shape = "x".join(map(str, next(iter(test_networks.NETWORKS[name][2].values())).shape))
        lines.append(f"| {name} | {shape} | {threads} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | {runs} |")
    lines += ["", "| network | model file, MB | o3c at O1, s | of the processor, s | peak memory, MB |", "|-|-:|-:|-:|-:|"]
    for name, size, seconds, used, memory in compilers:
        lines.append(f"| {name} | {size / MEGABYTE:.1f} | {seconds:.1f} | {used:.1f} | {memory / MEGABYTE:.0f} |")
    return "\n".join(lines)


def bars(rows, compilers):
    """[(what, found, bar, unit)] for ResNet-50."""
    found = []
    for name, size, seconds, _, memory in compilers:
        if name == "resnet50":
            found.append(("time of o3c", seconds, MAX_COMPILE_SECONDS, "s"))
            found.append(("peak memory of o3c", memory / MEGABYTE,
                          (MAX_MEMORY_FACTOR * size + MAX_MEMORY_EXTRA) / MEGABYTE, "MB"))
    for name, threads, ours, theirs, _ in rows:
        if name == "resnet50":
            found.append((f"time of a run with {threads} threads, over ONNX Runtime's", ours / theirs, MAX_TIME_RATIO, ""))
    return found


def write_page(machine, text):
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write("# Benchmarks\n\nWritten by `bench/compare_ort.py --write`. Medians; the runs of both alternate in one "
                   f"process. A ratio below 1 means that O3 is faster.\n\n{machine}\n\n{text}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(test_networks.NETWORKS)} (default: all)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=6, help="for each network and number of threads")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    machine = versions()
    print(machine, flush=True)
    rows, compilers = [], []
    with tempfile.TemporaryDirectory(prefix="o3-bench-") as folder:
        for name in options.names or test_networks.NETWORKS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            measured, compiler = measure(name, options.threads, options.seconds, folder)
            rows += measured
            compilers.append(compiler)
    text = tables(rows, compilers)
    print(text)
    missed = 0
    for what, value, bar, unit in bars(rows, compilers):
        met = value <= bar
        missed += not met
        print(f"{'PASS' if met else 'FAIL'} resnet50, {what}: {value:.1f} {unit}".rstrip() + f", at most {bar:.0f} wanted")
    if options.write:
        write_page(machine, text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
