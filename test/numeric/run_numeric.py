#!/usr/bin/env python3
"""The numeric suite: the rows of rows_*.py, compiled at O0 to O3 and compared with an independent reference.

    run_numeric.py                    everything
    run_numeric.py Conv 'Add [A,B]'   the points whose labels hold one of these
    run_numeric.py --list             the labels

O3_SEED sets the seed of the random data (it is printed otherwise); O3_BUILD the build folder.
The last line is "numeric: P passed, F failed, S skipped", counted in points (a row with one dtype and either
one static size or symbolic dimensions) at one level.
"""

import argparse
import collections
import multiprocessing.connection
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time

import ahead_cases
import chain_cases
import channel_cases
import float8_cases
import fold_cases
import guard_cases
import last_cases
import numeric_job
import numeric_rows
import ports_cases
import sparse_auto_cases
import sparse_cases
import sparse_weight_cases
import winograd_cases

STATIC_POINTS, SYMBOLIC_POINTS = 48, 12  # in one model
JOB_SECONDS = 240


def chunks(points):
    """[(opset, points)]: points of one family, kind and opset together."""
    groups = collections.defaultdict(list)
    for point in points:
        opset = point.row.option("opset", numeric_job.DEFAULT_OPSET)
        groups[point.row.source, point.symbolic, opset].append(point)
    found = []
    for (_, symbolic, opset), members in groups.items():
        size = SYMBOLIC_POINTS if symbolic else STATIC_POINTS
        found += [(opset, members[i:i + size]) for i in range(0, len(members), size)]
    return found


class Worker:
    """A process that runs one job. It leaves its result, and what it is doing, in files."""

    def __init__(self, opset, points, seed, scratch):
        self.opset, self.points, self.seed = opset, points, seed
        self.folder = tempfile.mkdtemp(dir=scratch)
        self.deadline = time.monotonic() + JOB_SECONDS
        self.process = multiprocessing.Process(target=self.work)
        self.process.start()

    def note(self, text):
        with open(os.path.join(self.folder, "note"), "w", encoding="utf-8") as file:
            file.write(text)

    def work(self):
        results = numeric_job.Job(self.points, self.opset, self.seed, self.note).run(self.folder)
        with open(os.path.join(self.folder, "results"), "wb") as file:
            pickle.dump(results, file)

    def stop_if_late(self):
        if time.monotonic() > self.deadline:
            self.process.kill()

    def collect(self):
        """The results, or None and why there are none."""
        self.process.join()
        code, late = self.process.exitcode, time.monotonic() > self.deadline
        path = os.path.join(self.folder, "results")
        results, why = None, ""
        if code == 0 and os.path.exists(path):
            with open(path, "rb") as file:
                results = pickle.load(file)
        else:
            with open(os.path.join(self.folder, "note"), encoding="utf-8") as file:
                stage = file.read()
            name = "timeout" if late else f"crash: {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            why = f"{name} during {stage}"
        shutil.rmtree(self.folder)
        return results, why


def run_jobs(jobs, seed, options, scratch):
    """{(label, level): None or what is wrong}. A job that crashes is run again in halves."""
    results = {}
    waiting, running = collections.deque(jobs), []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            opset, points = waiting.popleft()
            running.append(Worker(opset, points, seed, scratch))
        multiprocessing.connection.wait([worker.process.sentinel for worker in running], timeout=1)
        for worker in list(running):
            worker.stop_if_late()
            if worker.process.is_alive():
                continue
            running.remove(worker)
            again = take_results(worker, results)
            waiting.extendleft((worker.opset, points) for points in again)
    return results


def take_results(worker, results):
    """Adds what the worker found; the lists of points that are to be run again."""
    found, why = worker.collect()
    points = worker.points
    if found is None:
        if len(points) > 1:
            return [points[:len(points) // 2], points[len(points) // 2:]]
        results.update({(points[0].label(), level): why for level in numeric_rows.levels_of(points[0])})
        return []
    again = {key[0] for key, what in found.items() if isinstance(what, tuple)}
    results.update({key: what for key, what in found.items() if key[0] not in again})
    return [[point] for point in points if point.label() in again]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="*", help="parts of the labels of the points to run (default: all)")
    parser.add_argument("--list", action="store_true", help="print the labels and stop")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count()), help="models at a time")
    parser.add_argument("--failures", metavar="FILE", help="write the failures, grouped by op")
    return parser.parse_args()


def report(results, file):
    by_op = collections.defaultdict(list)
    for (label, level), what in results.items():
        if what:
            by_op[label.split(" ")[0] if "=" not in label.split(" [")[0] else "chain"].append(f"O{level} {label}: {what}")
    for op, lines in sorted(by_op.items(), key=lambda item: -len(item[1])):
        print(f"## {op} ({len(lines)})", file=file)
        for line in lines:
            print(f"FAIL {line}", file=file)


def main():
    options = arguments()
    points = [point for point in numeric_rows.all_points() if not options.labels or any(part in point.label() for part in options.labels)]
    if options.list:
        print("\n".join(point.label() for point in points))
        return 0
    seed = int(os.environ.get("O3_SEED", random.SystemRandom().randrange(2**31)))
    print(f"numeric: {len(points)} points, O3_SEED={seed}", flush=True)
    scratch = tempfile.mkdtemp(prefix="o3-numeric-")
    start = time.monotonic()
    try:
        results = run_jobs(chunks(points), seed, options, scratch)
        results.update(guard_cases.run(scratch, options.labels))
        results.update(ahead_cases.run(scratch, options.labels, seed))
        results.update(chain_cases.run(scratch, options.labels, seed))
        results.update(channel_cases.run(scratch, options.labels, seed))
        results.update(float8_cases.run(scratch, options.labels, seed))
        results.update(fold_cases.run(scratch, options.labels, seed))
        results.update(last_cases.run(scratch, options.labels, seed))
        results.update(ports_cases.run(scratch, options.labels, seed))
        results.update(sparse_auto_cases.run(scratch, options.labels, seed))
        results.update(sparse_cases.run(scratch, options.labels, seed))
        results.update(sparse_weight_cases.run(scratch, options.labels, seed))
        results.update(winograd_cases.run(scratch, options.labels, seed))
    finally:
        shutil.rmtree(scratch)
    report(results, sys.stdout)
    if options.failures:
        with open(options.failures, "w", encoding="utf-8") as file:
            report(results, file)
    failed = sum(what is not None for what in results.values())
    print(f"{time.monotonic() - start:.0f} s; to see it again: O3_SEED={seed}")
    print(f"numeric: {len(results) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
