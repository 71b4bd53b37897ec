# RUN: rm -rf %t && mkdir -p %t/ampere %t/turing %t/volta
# RUN: %python %S/../../../gpu/kernel_cases.py --ampere > %t/ampere.mlir && gpu_kernels ampere %t/ampere.mlir %t/ampere
# RUN: %python %S/../../../gpu/kernel_cases.py --turing > %t/turing.mlir && gpu_kernels turing %t/turing.mlir %t/turing
# RUN: %python %S/../../../gpu/kernel_cases.py --volta > %t/volta.mlir && gpu_kernels volta %t/volta.mlir %t/volta
# RUN: %python %s %t
# REQUIRES: ptxas
"""Products of warps assemble without spilled registers: of each card's kernels every third, not the same ones. ptxas
takes no card before 7.5 any more, but the code of one."""
import glob
import os
import re
import subprocess
import sys

for number, (card, arch) in enumerate((("ampere", "sm_80"), ("turing", "sm_75"), ("volta", "sm_75"))):
    files = sorted(glob.glob(os.path.join(sys.argv[1], card, "*.ptx")))
    assert len(files) > 30, f"{len(files)} kernels were written for {card}"
    for path in files[number::3]:
        report = subprocess.run(["ptxas", f"-arch={arch}", "-v", path, "-o", os.devnull], capture_output=True, text=True)
        assert report.returncode == 0, f"{path}: {report.stderr}"
        assert not re.search(r"[1-9][0-9]* bytes spill", report.stderr), f"{path} spills: {report.stderr}"
