#!/usr/bin/env python3
"""Compiled models against ONNX Runtime and OpenVINO, and pruned ones against DeepSparse, on this processor.

    bench/compare_cpu.py                      all networks at O1, O2 and O3, 1 and 2 threads; a quarter of an hour
    bench/compare_cpu.py --quick              O3 alone, shortly; a minute or two
    bench/compare_cpu.py resnet50 --threads 1 --levels 3 --no-layers
    bench/compare_cpu.py --write              and write the tables to docs/benchmarks.md
    bench/compare_cpu.py --target x86-64-v3   O3 for AVX2 against peers that are held to AVX2 (bench/bench_avx2.py)

All contenders run in one process and take turns, so that they meet the same machine. A turn begins when the machine is
idle, as threads of the one before may spin for long, and is a few runs, of which the first is not counted. Told are the
median and, in brackets, the quartiles. The outputs have to agree before anything is timed. O3_BUILD is the build folder.
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
import onnx
import onnxruntime

import bench_avx2
import bench_layers
import bench_networks
import bench_peers
import bench_traffic
import bench_tables
import o3_model
import test_networks

PAGE = os.path.join(bench_networks.ROOT, "docs", "benchmarks.md")
AVX2, AVX2_HEADING = "x86-64-v3", "## AVX2"
MEGABYTE = 1e6
TURN_SECONDS, LEAST_ROUNDS = 0.1, 5
IDLE_SECONDS, MOST_WAIT_SECONDS = 0.03, 1.0
# Bars of the compiler, on ResNet-50 at O3.
MAX_COMPILE_SECONDS, MAX_MEMORY_FACTOR = 12, 3


# ---- Timing ----

def busy_seconds():
    """Of all processors, since the machine started; in steps of about 10 ms."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = file.readline().split()
    user, nice, system = map(int, fields[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def wait_for_idle():
    """Until threads of the contender before have stopped spinning: those of ONNX Runtime would take a processor from the
    next one for up to a few tenths of a second. A machine with other work is waited for in vain, so not for long."""
    end, busy = time.perf_counter() + MOST_WAIT_SECONDS, busy_seconds()
    while time.perf_counter() < end:
        time.sleep(IDLE_SECONDS)
        before, busy = busy, busy_seconds()
        if busy - before <= IDLE_SECONDS / 2:
            return


def turn(call, kept):
    """Two runs at least, the first uncounted."""
    wait_for_idle()
    call()
    end = time.perf_counter() + TURN_SECONDS
    while True:
        start = time.perf_counter()
        call()
        stop = time.perf_counter()
        kept.append(stop - start)
        if stop > end:
            return


def interleaved(calls, seconds):
    """The times of each call in ms; they take turns for about |seconds|."""
    times = [[] for _ in calls]
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < LEAST_ROUNDS:
        for call, kept in zip(calls, times):
            turn(call, kept)
        rounds += 1
    return [[value * 1e3 for value in kept] for kept in times]


def digits(value):
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def spread(times):
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{digits(middle)} ({digits(low)}-{digits(high)})"


# ---- The compiler ----

def child_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Build:
    """A compilation of a network: |title| is its column."""

    def __init__(self, title, level, path, library, options=()):
        used = child_seconds()
        o3_model.compile_model(path, library, level, options)
        self.title, self.level, self.library = title, level, library
        self.seconds = child_seconds() - used
        self.memory = o3_model.compile_model.report["peak_rss"]
        self.file_bytes = os.path.getsize(path)
        self.model = o3_model.Model(library)

    def contender(self, feeds, threads):
        session = self.model.session(threads=threads)
        given = [feeds[name] for name, _, _ in self.model.inputs]
        return session.bind(given), session.run(given)


def builds_of(name, path, options, folder):
    """Those of the network's row: chains show what joining gains instead of what fixed shapes gain."""
    library = lambda title: os.path.join(folder, f"{name}.{title}.so")
    target = ["--target", options.target]
    built = [Build(f"O{level}", level, path, library(f"O{level}"), target) for level in options.levels]
    top, symbolic = max(options.levels), not options.quick
    if options.target == AVX2:
        return built
    if bench_networks.is_chain(name):
        built.append(Build("unfused", top, path, library("unfused"), [*target, "--no-fusion"]))
    elif symbolic and name in test_networks.NETWORKS:
        path, symbolic_options = test_networks.NETWORKS[name][0](), test_networks.OPTIONS.get(name, ())
        built.append(Build("symbolic", top, path, library("symbolic"), [*target, *symbolic_options]))
    return built


# ---- A network ----

class Peers:
    """Which of those that have to be installed there are: versions, or None. Nothing holds DeepSparse to AVX2."""

    def __init__(self, names, target):
        self.openvino = bench_peers.install_openvino()
        self.deepsparse = self.deepsparse_python = None
        if target == AVX2:
            bench_avx2.hold_peers()
        elif any(map(bench_networks.is_unstructured, names)):
            self.deepsparse_python, self.deepsparse = bench_peers.install_deepsparse(o3_model.BUILD)

    def titles(self):
        return ["ONNX Runtime", *(["OpenVINO"] if self.openvino else []), *(["DeepSparse"] if self.deepsparse else [])]


def agree(results, expected, who, name):
    error = 3e-2 if bench_networks.is_half(name) else 1e-3  # of halves who rounds where is his own choice
    if all(np.allclose(a, b, rtol=error, atol=error) for a, b in zip(results, expected)):
        return
    raise SystemExit(f"compare_cpu: {name}: {who}'s outputs differ from ONNX Runtime's; run test/models/run_models.py")


def contenders(name, path, feeds, threads, built, peers):
    """[(title, call)]; ONNX Runtime's outputs are what the others have to give."""
    call, expected = bench_peers.onnx_runtime(path, feeds, threads)
    found = [("ONNX Runtime", call)]
    if peers.openvino:
        call, results = bench_peers.openvino_model(path, feeds, threads)
        agree(results, expected, "OpenVINO", name)
        found.append(("OpenVINO", call))
    if peers.deepsparse and bench_networks.is_unstructured(name):
        call, results = bench_peers.deepsparse_model(path, feeds, threads, peers.deepsparse_python)
        agree(results, expected, "DeepSparse", name)
        found.append(("DeepSparse", call))
    for build in built:
        call, results = build.contender(feeds, threads)
        agree(results, expected, f"O3 ({build.title})", name)
        found.append((build.title, call))
    return found


def measure(name, options, peers, folder):
    """Rows (name, shape, threads, {title: times in ms}), the builds, rows of layers, and what they are held against."""
    model, feeds = bench_networks.get(name)
    path = os.path.join(folder, f"{name}.onnx")
    onnx.save(bench_networks.fix_shapes(model, feeds), path)
    built = builds_of(name, path, options, folder)
    rows = []
    for threads in options.threads:
        racing = contenders(name, path, feeds, threads, built, peers)
        times = interleaved([call for _, call in racing], options.seconds)
        rows.append((name, bench_networks.shape_text(feeds), threads, dict(zip([title for title, _ in racing], times))))
    top = max(built, key=lambda build: (build.level, build.title == f"O{build.level}"))
    wanted = options.layers and name in test_networks.NETWORKS
    layers, rooflines = [], []
    if wanted:
        plan = bench_traffic.plan_of(path, top.level, options.target)
        layers, rooflines = bench_layers.rows_of(name, model, feeds, top.library, plan, options.threads)
    os.unlink(path)
    return rows, built, layers, rooflines


# ---- Tables ----

def run_table(rows, titles, against):
    """|against|: [(column, over which)]: ratios of medians."""
    heads = "".join(f" {title} |" for title in titles) + "".join(f" {a} / {b} |" for a, b in against)
    lines = [f"| network | input | threads |{heads} runs |", "|-|-|-:|" + "-:|" * (len(titles) + len(against) + 1)]
    for name, shape, threads, times in rows:
        median = {title: statistics.median(kept) for title, kept in times.items()}
        cells = "".join(f" {spread(times[title])} |" if title in times else " |" for title in titles)
        cells += "".join(f" {median[a] / median[b]:.2f} |" if a in median and b in median else " |" for a, b in against)
        lines.append(f"| {name} | {shape} | {threads} |{cells} {min(map(len, times.values()))} |")
    return "\n".join(lines)


def compiler_table(builds):
    lines = ["| network | build | model file, MB | o3c, s of the processor | peak memory, MB | of the file |",
             "|-|-|-:|-:|-:|-:|"]
    for name, build in builds:
        lines.append(f"| {name} | {build.title} | {build.file_bytes / MEGABYTE:.1f} | {build.seconds:.1f} | "
                     f"{build.memory / MEGABYTE:.0f} | {build.memory / build.file_bytes:.1f} |")
    return "\n".join(lines)


def layer_text(options, top, layers, rooflines):
    machine = "; ".join(roofline.text(threads) for roofline, threads in zip(rooflines, options.threads))
    return ["## Layers", f"All distinct convolutions and products of the networks at {top}: the median of equal ones, in place "
            "in the network, copies and transforms around it included. Of peak: of what FMAs on vectors reach with as many "
            "threads, measured in the same run; operations are the model's, so that Winograd can pass 100 %. Of its bound: "
            "the time that the machine needs at least, over the layer's, and what that is for: arithmetic, on taps inside "
            "the image and in whole vectors of 8 results, or moving operands and results once, each at the rate of a copy in the cache or memory "
            "in which it is then, by the memory plan (bench/bench_layers.py has the rule). What arithmetic bounds has to come near it or the peak. "
            f"`o3-run MODEL.so --random --profile` shows the same by kernel. {machine}.",
            bench_layers.table(layers, options.threads), bench_layers.below_bar(layers, options.threads)]


def tables(options, rows, builds, layers, rooflines, peers):
    top = f"O{max(options.levels)}"
    levels = [f"O{level}" for level in options.levels]
    sparse = [row for row in rows if bench_networks.is_sparse(row[0])]
    networks = [row for row in rows if not bench_networks.is_chain(row[0]) and row not in sparse]
    chains = [row for row in rows if bench_networks.is_chain(row[0])]
    against = [(top, peer) for peer in peers]
    others = [peer for peer in peers if peer != "DeepSparse"]
    plain = [(top, peer) for peer in others]
    text = []
    if networks:
        text += ["## Networks", "Milliseconds of a run. *symbolic*: the highest level, sizes of the file left open.",
                 run_table(networks, [*others, *levels, *([] if options.quick else ["symbolic"])], plain)]
    if sparse:
        text += ["## Pruned networks", "The same networks after `o3-prune` (bench/bench_networks.py has its options): "
                 "all convolutions but the first, the 1x1 layers of MobileNetV2, the products of BERT. O1 and O2 compute "
                 f"the zeros, {top} takes the format of `--sparse-format auto` for each weight. DeepSparse 1.8.0, the last "
                 "with code, is for single weights; it runs in a process of its own.",
                 run_table(sparse, [*peers, *levels], [*against, *((top, level) for level in levels if level != top)])]
    if chains:
        text += ["## Fusion", f"LayerNorm, GELU and a product. *unfused*: {top} with `--no-fusion`, one kernel a node.",
                 run_table(chains, [*others, *levels, "unfused"], [*plain, ("unfused", top)])]
    if layers:
        text += layer_text(options, top, layers, rooflines)
    text += ["## The compiler", "About 70 MB of the memory are o3c itself, with LLVM and MLIR in it.", compiler_table(builds)]
    return "\n\n".join(text)


def page_option(options):
    return "" if options.page == PAGE else f" --page {os.path.relpath(options.page, bench_networks.ROOT)}"


def avx2_lines(options, rows, peers, machine):
    levels = [f"O{level}" for level in options.levels]
    table = run_table(rows, [*peers, *levels], [(f"O{max(options.levels)}", peer) for peer in peers])
    command = " ".join([f"bench/compare_cpu.py --target {AVX2} --write{page_option(options)}", *(options.names or [])])
    return [f"Written by `{command}`: {', '.join(levels)} for x86-64-v3, and peers that take the machine for one without AVX-512 "
            "(bench/bench_avx2.py). Milliseconds of a run.", "", machine, "", *table.splitlines()]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def versions(peers):
    o3c = subprocess.run([os.path.join(o3_model.BUILD, "bin", "o3c"), "--version"], capture_output=True, text=True,
                         check=True).stdout.strip()
    openvino = f"OpenVINO {peers.openvino}" if peers.openvino else "no OpenVINO"
    deepsparse = f"; DeepSparse {peers.deepsparse}" if peers.deepsparse else ""
    return (f"{processor()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the start; {o3c}; ONNX Runtime "
            f"{onnxruntime.__version__}; {openvino}{deepsparse}; Python {platform.python_version()}; {time.strftime('%Y-%m-%d')}")


def bars(builds):
    """[(what, found, bar, unit)]."""
    found = []
    for name, build in builds:
        if name == "resnet50" and build.title == "O3":
            found.append(("time of o3c", build.seconds, MAX_COMPILE_SECONDS, "s"))
            found.append(("peak memory of o3c", build.memory / MEGABYTE, MAX_MEMORY_FACTOR * build.file_bytes / MEGABYTE, "MB"))
    return found


def write_page(page, machine, command, text):
    """A page whose first line, and whose AVX2 section, stay; a new one has none."""
    old = open(page, encoding="utf-8").read() if os.path.exists(page) else "# Benchmarks\n"
    kept = "\n".join(bench_tables.section(page, AVX2_HEADING)) if AVX2_HEADING in old else ""
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{old.splitlines()[0]}\n\nWritten by `{command}`. Medians and, in brackets, quartiles; all contenders take turns "
                   "in one process, on one file with fixed shapes. A ratio below 1 means that O3 is faster.\n\n"
                   f"{machine}\n\n{text}\n" + (f"\n{kept}\n" if kept else ""))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(bench_networks.names())} (default: all)")
    parser.add_argument("--target", choices=["cpu", AVX2], default="cpu", help="what O3 compiles for (default: cpu)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--levels", type=int, nargs="+", help="opt levels (default: 1 2 3; 3 for AVX2)")
    parser.add_argument("--seconds", type=float, help="for each network and number of threads (default: 6)")
    parser.add_argument("--quick", action="store_true", help="O3 alone, half a second each, no symbolic builds")
    parser.add_argument("--no-layers", dest="layers", action="store_false", help="no table of layers")
    parser.add_argument("--write", action="store_true", help="write the page; for AVX2 its section's measured rows")
    parser.add_argument("--page", metavar="FILE", default=PAGE, help="of another processor (default: docs/benchmarks.md)")
    options = parser.parse_args()
    options.levels = options.levels or ([3] if options.quick or options.target == AVX2 else [1, 2, 3])
    options.seconds = options.seconds if options.seconds is not None else 0.5 if options.quick else 6
    options.layers = options.layers and options.target != AVX2
    unknown = set(options.names) - set(bench_networks.names())
    if unknown:
        parser.error(f"there is no network {', '.join(sorted(unknown))}; there are {', '.join(bench_networks.names())}")
    return options


def main():
    options = parse()
    names = options.names or bench_networks.names()
    peers = Peers(names, options.target)
    machine = versions(peers)
    print(machine, flush=True)
    rows, builds, layers, rooflines = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="o3-bench-") as folder:
        for name in names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                measured, built, found, machine_of = measure(name, options, peers, folder)
            except test_networks.Unavailable as why:
                print(f"SKIPPED: {name} is not measured: {why}", flush=True)
                continue
            rows += measured
            builds += [(name, build) for build in built]
            layers += found
            rooflines = rooflines or machine_of
    avx2 = avx2_lines(options, rows, peers.titles(), machine) if options.target == AVX2 else None
    text = "\n".join(avx2) if avx2 else tables(options, rows, builds, layers, rooflines, peers.titles())
    print(text)
    missed = 0
    for what, value, bar, unit in bars(builds):
        met = value <= bar
        missed += not met
        print(f"{'PASS' if met else 'FAIL'} resnet50, {what}: {value:.1f} {unit}, at most {bar:.0f} wanted")
    if options.write and avx2:
        bench_tables.write(options.page, AVX2_HEADING, avx2, keys=3)
    elif options.write:
        write_page(options.page, machine, f"bench/compare_cpu.py --write{page_option(options)}", text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
