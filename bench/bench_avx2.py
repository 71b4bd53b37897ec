"""The peers held to AVX2, on a machine that has more: neither ONNX Runtime nor OpenVINO has a switch for all of its kernels.

A program may use 512-bit registers only where the system keeps them, which it asks with XGETBV. In copies of the peers'
libraries that instruction (three bytes) is `mov al, 7; nop`: the system keeps x87, SSE and AVX, nothing more. All their
checks come to it, those of MLAS, of oneDNN and of Xbyak, which also writes OpenVINO's kernels.
"""

import glob
import importlib.util
import os
import shutil
import struct
import sys

import bench_networks

PACKAGES = ("onnxruntime", "openvino")
FOLDER = os.path.abspath(os.path.join(bench_networks.BUILD, "avx2-peers"))
XGETBV, ONLY_AVX = bytes.fromhex("0f01d0"), bytes.fromhex("b00790")
PROGRAM_LOAD, EXECUTABLE = 1, 1


def code_ranges(image):
    """[(first byte, end)] of a 64-bit ELF file's executable segments."""
    start, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for header in range(start, start + size * count, size):
        kind, flags, offset, _, _, length = struct.unpack_from("<IIQQQQ", image, header)
        if kind == PROGRAM_LOAD and flags & EXECUTABLE:
            yield offset, offset + length


def mask(path):
    """Replaces the instruction in place; how many there were."""
    with open(path, "rb") as file:
        image = bytearray(file.read())
    found = 0
    for start, end in code_ranges(image):
        found += image.count(XGETBV, start, end)
        image[start:end] = image[start:end].replace(XGETBV, ONLY_AVX)
    if found:
        with open(path, "wb") as file:
            file.write(image)
    return found


def copy(package):
    """A copy of an installed package whose libraries see AVX2 at most."""
    source = importlib.util.find_spec(package).submodule_search_locations[0]
    target = os.path.join(FOLDER, package)
    shutil.copytree(source, target)
    libraries = glob.glob(os.path.join(target, "**", "*.so*"), recursive=True)
    if not sum(map(mask, libraries)):
        raise SystemExit(f"bench_avx2: no XGETBV in the libraries of {source}: how does it ask for AVX-512?")


def hold_peers():
    """Starts this script anew with the copies, unless they are what is loaded. OpenVINO, which may be missing, is
    compared with where it is there."""
    module = sys.modules.get(PACKAGES[0])
    if module and os.path.dirname(os.path.dirname(module.__file__)) == FOLDER:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    for package in PACKAGES:
        if importlib.util.find_spec(package):
            copy(package)
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONPATH": FOLDER})
