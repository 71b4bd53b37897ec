#!/usr/bin/env python3
"""Runs the lit tests against a build folder: suite-lit.py <suite name> <build folder> [lit option ...]"""

import collections
import json
import os
import subprocess
import sys
import tempfile

PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def main():
    name, build, *options = sys.argv[1:]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    llvm_config = os.environ.get("LLVM_CONFIG", "llvm-config-22")
    bindir = subprocess.check_output([llvm_config, "--bindir"], text=True).strip()
    with tempfile.TemporaryDirectory() as scratch:
        results = os.path.join(scratch, "results.json")
        command = [os.path.join(bindir, "lit"), "-v", "-j2", "-o", results, "-Dbuild=" + os.path.abspath(build)]
        status = subprocess.call(command + options + [os.path.join(root, "test", "lit")])
        if not os.path.exists(results):
            sys.exit(f"{name}: lit ended with status {status} and wrote no results")
        with open(results, encoding="utf-8") as file:
            codes = collections.Counter(test["code"] for test in json.load(file)["tests"])
    passed = sum(codes[code] for code in PASSED)
    skipped = sum(codes[code] for code in SKIPPED)
    failed = sum(codes.values()) - passed - skipped
    print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
