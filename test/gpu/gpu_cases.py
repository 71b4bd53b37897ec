#!/usr/bin/env python3
"""The numeric rows on an NVIDIA GPU: compiled into a folder, then run from it, on this machine or on another one that
has a card and needs neither o3c nor ONNX.

    gpu_cases.py pack FOLDER [--target hopper] [--hardware FILE] [--level 2] [LABEL ...]    compile the points whose labels hold one of these
    gpu_cases.py run FOLDER                                              run them on the card and compare
    gpu_cases.py check [LABEL ...]                                       both, with --target gpu; skips without a card

With the figures of a card of one multiprocessor (o3c --print-hardware) small cases take the kernels that large ones
take on a large card. References are those of the numeric suite (NumPy in float64 or ONNX Runtime), computed when packing. Each library is run
three times in one session: as written, recorded, and as a replay of the record. The last line is
"gpu: P passed, F failed, S skipped", counted in points at one level.
"""

import argparse
import collections
import concurrent.futures
import ctypes
import itertools
import multiprocessing
import os
import pickle
import random
import re
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "numeric")]

import apart

LEVELS = (0, 2)
RUNS = 3  # as written, recorded, replayed
NUMBERS = itertools.count()  # of libraries, for each process


# ---- Packing ----

class Packer:
    """Compiles parts of one opset and level into |folder|; |failed| collects (level, label, what is wrong)."""

    def __init__(self, folder, target, level, opset):
        self.folder, self.target, self.level, self.opset = folder, target, level, opset
        self.failed = []

    def fail(self, part, what):
        self.failed.append((self.level, part.point.label(), what))

    def compile(self, parts, library):
        import numeric_job
        import o3_model
        import onnx

        path = library.replace(".so", ".onnx")
        onnx.save(numeric_job.model_of(parts, self.opset), path)
        try:
            self.make(path, library)
            return None
        except o3_model.O3Error as error:
            return f"o3c: {error.code}: {error}"
        finally:
            os.remove(path)

    def make(self, path, library):
        import o3_model

        o3_model.compile_model(path, library, self.level, ("--threads", "1", *self.target))

    def pack(self, parts):
        """Parts that o3c refuses by name are taken out; when it names none, the job is split."""
        while parts:
            name = os.path.join(self.folder, f"O{self.level}-{os.getpid()}-{next(NUMBERS):04d}")
            what = self.compile(parts, f"{name}.so")
            if not what:
                self.write(parts, f"{name}.pickle")
                return
            named = re.search(r"\bp(\d+)_", what)
            guilty = [part for part in parts if named and part.prefix == named[0]] or (parts if len(parts) == 1 else [])
            if not guilty:
                self.pack(parts[:len(parts) // 2])
                parts = parts[len(parts) // 2:]
                continue
            self.fail(guilty[0], what)
            parts = [part for part in parts if part is not guilty[0]]

    def write(self, parts, path):
        from numeric_job import tolerance_factor

        cases = [(part.point.label(), part.prefix, [tolerance_factor(part.point, self.level, sizes) for sizes in part.point.sizes],
                  [part.feeds(trial) for trial in range(len(part.data))], part.expected) for part in parts]
        with open(path, "wb") as file:
            pickle.dump((self.level, cases), file)


JOBS = []  # (opset, points): what processes that are forked inherit, as points have functions


def pack_job(index, levels, target, seed, folder, packer_type=Packer):
    import numeric_job

    opset, points = JOBS[index]
    job = numeric_job.Job(points, opset, seed, lambda text: None)
    failed = [(level, label, what) for (label, level), what in job.results.items() if level in levels]
    for level in levels:
        packer = packer_type(folder, target, level, opset)
        packer.pack(list(job.parts))
        failed += packer.failed
    return failed


def pack(folder, target, levels, labels, seed):
    import numeric_rows
    import run_numeric

    os.makedirs(folder, exist_ok=True)
    points = [point for point in numeric_rows.all_points() if not labels or any(part in point.label() for part in labels)]
    print(f"gpu: {len(points)} points for {' '.join(target)}, O3_SEED={seed}", flush=True)
    failed = []
    JOBS[:] = run_numeric.chunks(points)
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        jobs = [pool.submit(pack_job, index, levels, target, seed, folder) for index in range(len(JOBS))]
        for job in jobs:
            failed += job.result()
    with open(os.path.join(folder, "failed"), "wb") as file:
        pickle.dump(failed, file)
    return len(failed)


# ---- Running ----

def run_library(path, results):
    import o3_model
    from numeric_compare import difference

    with open(path, "rb") as file:
        level, cases = pickle.load(file)
    try:
        model = o3_model.Model(path.replace(".pickle", ".so"))
        session = model.session()
    except o3_model.O3Error as error:
        results.update({(level, label): str(error) for label, *_ in cases})
        return
    names = [name for name, _, _ in model.outputs]
    results.update({(level, label): None for label, *_ in cases})
    for trial in range(max(len(feeds) for _, _, _, feeds, _ in cases)):
        feeds = {}
        for _, _, _, trials, _ in cases:
            feeds.update(trials[min(trial, len(trials) - 1)])
        for turn in range(RUNS):
            try:
                outputs = dict(zip(names, session.run_named(feeds)))
            except o3_model.O3Error as error:
                results.update({(level, label): f"run {turn} of trial {trial}: {error}" for label, *_ in cases})
                return
            for label, prefix, factors, trials, expected in cases:
                known = min(trial, len(trials) - 1)
                for i, want in enumerate(expected[known]):
                    what = difference(outputs[f"{prefix}y{i}"], want, factors[known])
                    if what and not results[level, label]:
                        results[level, label] = f"run {turn} of trial {trial}, output {i}: {what}"


def run_apart(path, results):
    """A crash fails the library's points."""
    found, how = apart.call(library_results, path)
    if how:
        with open(path, "rb") as file:
            level, cases = pickle.load(file)
        found = {(level, label): how for label, *_ in cases}
    results.update(found)


def library_results(path):
    found = {}
    run_library(path, found)
    return found


def run(folder):
    results = {}
    with open(os.path.join(folder, "failed"), "rb") as file:
        results.update({(level, label): what for level, label, what in pickle.load(file)})
    start = time.monotonic()
    multiprocessing.set_start_method("spawn")
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".pickle")]
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count())) as pool:
        list(pool.map(lambda path: run_apart(path, results), paths))
    by_op = collections.defaultdict(list)
    for (level, label), what in results.items():
        if what:
            by_op[label.split(" ")[0]].append(f"FAIL O{level} {label}: {what}")
    for lines in by_op.values():
        print("\n".join(lines))
    failed = sum(map(len, by_op.values()))
    print(f"{time.monotonic() - start:.0f} s")
    print(f"gpu: {len(results) - failed} passed, {failed} failed, 0 skipped")
    return failed


def has_card():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def check(labels, seed):
    if not has_card():
        print("SKIP: no NVIDIA driver or no card in this machine: NOTHING WAS RUN ON A GPU")
        print("gpu: 0 passed, 0 failed, 1 skipped")
        return 0
    folder = tempfile.mkdtemp(prefix="o3-gpu-")
    try:
        pack(folder, ("--target", "gpu"), LEVELS, labels, seed)
        return run(folder)
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pack", "run", "check"))
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--target", default="gpu")
    parser.add_argument("--hardware", metavar="FILE", help="figures of the card, as o3c takes them")
    parser.add_argument("--level", type=int, action="append")
    options = parser.parse_intermixed_args()
    seed = int(os.environ.get("O3_SEED", random.SystemRandom().randrange(2**31)))
    if options.what == "check":
        return 1 if check(options.arguments, seed) else 0
    folder, *labels = options.arguments
    if options.what == "run":
        return 1 if run(folder) else 0
    target = ("--target", options.target, *(("--hardware", options.hardware) if options.hardware else ()))
    pack(folder, target, options.level or LEVELS, labels, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
