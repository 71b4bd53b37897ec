# RUN: rm -rf %t && mkdir -p %t
# RUN: %python %S/../../../gpu/kernel_cases.py --checked > %t/cases.mlir
# RUN: gpu_kernels hopper %t/cases.mlir %t
# RUN: %python %s %t
# REQUIRES: ptxas
"""Every fast kernel assembles without spilled registers and without warpgroup products that run one by one."""
import glob
import os
import re
import subprocess
import sys

SERIALISED = ("C7510", "C7511")
files = sorted(glob.glob(os.path.join(sys.argv[1], "*.ptx")))
assert len(files) > 30, f"{len(files)} kernels were written"
for path in files[::2]:
    report = subprocess.run(["ptxas", "-arch=sm_90a", "-v", path, "-o", os.devnull], capture_output=True, text=True)
    assert report.returncode == 0, f"{path}: {report.stderr}"
    assert not re.search(r"[1-9][0-9]* bytes spill", report.stderr), f"{path} spills: {report.stderr}"
    assert not any(code in report.stderr for code in SERIALISED), f"{path}: {report.stderr}"
