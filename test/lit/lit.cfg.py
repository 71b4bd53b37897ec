# lit's configuration: `lit test/lit` (of LLVM 22) with -Dbuild=<folder> for another build folder than build/.
#
# Tests are .mlir, .test, .py and .c files whose RUN lines may use every tool of the build by name (o3c,
# o3-opt, o3-run ...), LLVM's and MLIR's tools (FileCheck, not, mlir-opt, llvm-objdump ...), and
#   %model_h    the folder to give to -I for o3/model.h
#   %data       test/data
#   %python     the Python with the packages of test/requirements.txt
#   %cc         the C compiler
# REQUIRES: takes ptxas, cuda (a device is there), asan, and the features of this CPU as /proc/cpuinfo
# writes them (avx2, avx512f, amx_tile ...).
import os
import shutil
import subprocess
import sys

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.path.abspath(lit_config.params.get("build", os.path.join(root, "build")))
llvm_config = os.environ.get("LLVM_CONFIG", "llvm-config-22")
llvm_bin = subprocess.check_output([llvm_config, "--bindir"], text=True).strip()

config.name = "o3"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".py", ".c"]
config.excludes = ["lit.cfg.py", "Inputs", "inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "lit")

if not os.path.isdir(os.path.join(build, "bin")):
    lit_config.fatal(f"no tools in {build}/bin: build first, or name the build folder with -Dbuild=<folder>")
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), llvm_bin, os.environ["PATH"]])

# The libraries of MLIR are not instrumented, so container checks across them would be false; too large an
# allocation must give NULL, as it does elsewhere.
suppressions = os.path.join(root, "test", "lsan.supp")
config.environment["ASAN_OPTIONS"] = "detect_container_overflow=0:allocator_may_return_null=1"
config.environment["LSAN_OPTIONS"] = f"suppressions={suppressions}:print_suppressions=0"
config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
for name in ("HOME", "TMPDIR", "CUDA_VISIBLE_DEVICES", "LLVM_CONFIG"):
    if name in os.environ:
        config.environment[name] = os.environ[name]


def test_python():
    """The build's own environment, or that of the main build folder when |build| lies within it."""
    for folder in (build, os.path.dirname(build), os.path.join(root, "build")):
        python = os.path.join(folder, "venv", "bin", "python")
        if os.path.exists(python):
            return python
    return sys.executable


def build_is_sanitized():
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
        return "O3_SANITIZE:BOOL=ON" in cache.read()


def cpu_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split(":")[1].split() for line in info if line.startswith("flags")), [])


config.substitutions += [
    ("%model_h", os.path.join(root, "include")),
    ("%data", os.path.join(root, "test", "data")),
    ("%python", test_python()),
    ("%cc", os.environ.get("CC", "cc")),
]
config.available_features.update(cpu_flags())
if shutil.which("ptxas"):
    config.available_features.add("ptxas")
if os.path.exists("/dev/nvidia0"):
    config.available_features.add("cuda")
if build_is_sanitized():
    config.available_features.add("asan")
