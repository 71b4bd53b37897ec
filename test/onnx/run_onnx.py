#!/usr/bin/env python3
"""Compiles and runs ONNX's backend test data and holds the result against a list of what passes.

    run_onnx.py                       every case at its levels; fails when a case of passing.txt does not pass
    run_onnx.py softmax 'node/test_a' the cases whose names hold one of these
    run_onnx.py --update              and rewrite passing.txt and docs/onnx-support.md
    run_onnx.py --failures FILE       and write what is wrong, grouped by op

Environment: O3_BUILD (default build): bin/o3c and bin/o3-run. O3_ONNX_TEST_DATA: see onnx_cases.py.
Its last line is "onnx: P passed, F failed, S skipped": P and F count the cases of passing.txt, S those of the
list that this run did not do.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "numeric"))

import numeric_rows
import onnx_cases
import onnx_report

ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("O3_BUILD", os.path.join(ROOT, "build"))
PASSING = os.path.join(HERE, "passing.txt")
SUPPORT = os.path.join(ROOT, "docs", "onnx-support.md")
LEVELS = (0, 1, 2, 3)
LIGHT_PATIENCE = 5  # times the timeout of the others

# status: passed; refused (o3c says that it does not support the model); error (o3c fails in another way);
# crash; timeout; run (the compiled model fails); wrong (an output differs).
Result = collections.namedtuple("Result", "status reason")
Ended = collections.namedtuple("Ended", "code out err")


def tool(name):
    return os.path.join(BUILD, "bin", name)


def run_tool(command, seconds):
    """How |command| ended; code is None when it took more than |seconds|."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               text=True, errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=seconds)
        return Ended(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Ended(None, "", "")


def died(who, ended, seconds):
    """A result when the tool took too long or was ended by a signal; otherwise None."""
    if ended.code is None:
        return Result("timeout", f"{who} took more than {seconds} s")
    if ended.code < 0:
        tail = (ended.err.strip().splitlines() or [""])[-1]
        return Result("crash", f"{who} was ended by {signal.Signals(-ended.code).name} {tail}".strip())
    return None


def last_object(text):
    """The JSON object in the last line of |text|, or {}."""
    try:
        return json.loads(text.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {}


def compile_case(case, level, library, seconds):
    """None, or why there is no library."""
    command = [tool("o3c"), case.model, f"-O{level}", "-o", library, "--threads", "1", "--json", "--quiet"]
    ended = run_tool(command, seconds)
    if ended.code == 0:
        return None
    bad = died("o3c", ended, seconds)
    if bad:
        return bad
    answer = last_object(ended.out)
    message = answer.get("error", (ended.err.strip() or ended.out.strip() or f"exit status {ended.code}"))
    return Result("refused" if answer.get("code") == "unsupported" else "error", message)


def compare_case(case, library, seconds):
    command = [tool("o3-run"), library, "--rtol", str(case.rtol), "--atol", str(case.atol), "--threads", "1"]
    for folder in case.sets():
        command += ["--test-dir", folder]
    ended = run_tool(command, seconds)
    if ended.code == 0:
        return Result("passed", "")
    bad = died("the model", ended, seconds)
    if bad:
        return bad
    differs = [line.strip() for line in ended.out.splitlines() if "DIFFERS" in line]
    if differs:
        return Result("wrong", differs[0])
    return Result("run", ended.err.strip() or ended.out.strip() or f"o3-run ended with {ended.code}")


def levels_of(case, rows):
    """The levels that tell something of |case|, when |rows| are the ops that the numeric suite has at O1.

    O0 is the reference, and O3 does all that O2 does. O1 joins nothing and is asked for ops that only these cases have.
    A function that is written out in small ops is a test of joining them: each op has cases of its own. The plain loops
    of O0 take minutes for a VGG-19; test/models runs whole networks at O0.
    """
    if case.light:
        return (1,)
    if onnx_cases.is_expanded(case):
        return (3,)
    return (0, 3) if onnx_cases.ops_of(case.model) <= rows else (0, 1, 3)


def run_case(case, levels, folder, seconds):
    """{level: Result}."""
    results = {}
    seconds *= LIGHT_PATIENCE if case.light else 1
    for level in levels:
        library = os.path.join(folder, f"{case.name.replace('/', '-')}-O{level}.so")
        results[level] = compile_case(case, level, library, seconds) or compare_case(case, library, seconds)
        if os.path.exists(library):
            os.unlink(library)
    return results


def run_all(cases, folder, options):
    """{name: {level: Result}}; light models, the big ones, come first."""
    results = {}
    rows = numeric_rows.ops_at(1) | {"Constant"}
    cases = sorted(cases, key=lambda case: not case.light)
    for case in cases:
        if case.light:
            onnx_cases.light_data_write(case)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {}
        for case in cases:
            levels = levels_of(case, rows) if options.level is None else (options.level,)
            jobs[pool.submit(run_case, case, levels, folder, options.timeout)] = case
        for job in concurrent.futures.as_completed(jobs):
            results[jobs[job].name] = job.result()
            if len(results) % 400 == 0:
                print(f"onnx: {len(results)} of {len(cases)} cases", flush=True)
    return results


def read_passing():
    if not os.path.exists(PASSING):
        return set()
    with open(PASSING, encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def write_passing(names):
    with open(PASSING, "w", encoding="utf-8") as file:
        file.write("# The cases of ONNX 1.22.0's backend test data that pass at all their levels. Written by\n"
                   "# test/onnx/run_onnx.py --update; a case in this list that fails, fails the suite.\n")
        file.writelines(name + "\n" for name in sorted(names))


def judge(results, listed, all_names):
    """Prints the differences to the list; the counts of the closing line."""
    passing = {name for name, levels in results.items() if all(r.status == "passed" for r in levels.values())}
    failing = sorted((listed & set(results)) - passing)
    for name in failing:
        for level, result in results[name].items():
            if result.status != "passed":
                print(f"FAIL {name} at O{level}: {result.status}: {result.reason}")
    for name in sorted(listed - all_names):
        print(f"FAIL {name}: in passing.txt, but not in the test data")
    new = sorted(passing - listed)
    if new:
        print(f"newly passing (--update lists them): {len(new)}: {' '.join(new[:40])}{' ...' if len(new) > 40 else ''}")
    print(f"passing: {len(passing)} of the {len(results)} cases that were run")
    return len(listed & passing), len(failing) + len(listed - all_names), len((listed & all_names) - set(results))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of the cases to run (default: all)")
    parser.add_argument("--update", action="store_true", help="rewrite passing.txt and docs/onnx-support.md")
    parser.add_argument("--failures", metavar="FILE", help="write what is wrong, grouped by op")
    parser.add_argument("--json", metavar="FILE", help="write every result")
    parser.add_argument("--level", type=int, choices=LEVELS, help="one level only")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count()), help="cases at a time")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for one compilation and for one run")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every case that does not pass")
    return parser.parse_args()


def main():
    options = arguments()
    if options.update and (options.names or options.level is not None):
        sys.exit("run_onnx: --update needs all cases and levels")
    folder = onnx_cases.data_folder()
    if folder is None:
        print("SKIP: no test data: install the Python package onnx (make setup), or set O3_ONNX_TEST_DATA")
        print("onnx: 0 passed, 0 failed, 1 skipped")
        return 0
    scratch = tempfile.mkdtemp(prefix="o3-onnx-")
    try:
        cases = onnx_cases.all_cases(folder, scratch)
        chosen = [case for case in cases if not options.names or any(part in case.name for part in options.names)]
        start = time.monotonic()
        results = run_all(chosen, scratch, options)
        seconds = time.monotonic() - start
    finally:
        shutil.rmtree(scratch)
    by_name = {case.name: case for case in cases}
    report = onnx_report.Report(results, by_name)
    if options.verbose:
        report.print_failing()
    print(report.summary())
    print(f"{len(results)} cases in {seconds:.0f} s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({name: {f"O{k}": v for k, v in levels.items()} for name, levels in results.items()}, file, indent=1)
    if options.failures:
        with open(options.failures, "w", encoding="utf-8") as file:
            file.write(report.failures())
    if options.update:
        write_passing(report.passing())
        with open(SUPPORT, "w", encoding="utf-8") as file:
            file.write(report.support_page())
    passed, failed, skipped = judge(results, read_passing(), set(by_name))
    print(f"onnx: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
