"""Libraries of o3c for NVIDIA GPUs, made ready for the emulator (emulator.h) and run in it.

    path, sm = hardware("ampere", 2, folder)                      # a small card
    o3_model.compile_model(model, library, level, options)        # options have --target and --hardware
    translate(model, library, level, options)                     # its kernels as LIBRARY.kernels
    enter(library, sm, seed)                                      # once in a process: the runtime now finds the emulator
"""

import ctypes
import json
import os
import subprocess

import o3_model

CARDS = ("ampere", "turing", "volta", "hopper")
EMULATOR = os.path.join(o3_model.BUILD, "lib", "emulator", "libcuda.so.1")


def translate(model, library, level, options):
    """The kernels of |model| as LIBRARY.kernels; False when it has none."""
    code = f"{library}.ll"
    try:
        o3_model.compile_model(model, code, level, options)
    except o3_model.O3Error as error:
        if "no code for the card" in str(error):
            return False
        raise
    link(code, library)
    os.remove(code)
    return True


def link(code, library):
    object_file = f"{library}.o"
    subprocess.run([os.path.join(o3_model.BUILD, "bin", "gpu_emulator"), code, object_file], check=True)
    subprocess.run(["ld.lld", "-shared", "-o", f"{library}.kernels", object_file, EMULATOR], check=True)
    os.remove(object_file)


def hardware(card, multiprocessors, folder):
    """The figures of a small |card|: a file for o3c, and what compute capability it has."""
    printed = subprocess.run([os.path.join(o3_model.BUILD, "bin", "o3c"), "-t", card, "--print-hardware"], check=True, capture_output=True)
    figures = json.loads(printed.stdout)
    path = os.path.join(folder, f"{card}-{multiprocessors}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**figures, "multiprocessors": multiprocessors}, file)
    return path, figures["sm"]


def enter(library, sm, seed):
    """Opens the emulator, which the runtime then finds by its name. |seed|: of the order of threads."""
    os.environ.update({"O3_EMULATOR_KERNELS": f"{library}.kernels", "O3_EMULATOR_SM": str(sm), "O3_SEED": str(seed)})
    ctypes.CDLL(EMULATOR)
