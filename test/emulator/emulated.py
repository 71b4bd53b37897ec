"""Libraries of o3c for NVIDIA GPUs, made ready for the emulator (emulator.h) and run in it.

    path, sm = hardware("ampere", 2, folder)                      # a small card
    o3_model.compile_model(model, library, level, options)        # options have --target and --hardware
    translate(model, library, level, options)                     # its kernels as LIBRARY.kernels
    enter(library, sm, seed)                                      # once in a process: the runtime now finds the emulator
    result, printed = run_apart(library, sm, seed, action)        # or in a process of its own, which has entered
"""

import ctypes
import functools
import json
import os
import subprocess

import apart
import o3_model

CARDS = ("ampere", "turing", "volta", "hopper")
EMULATOR = os.path.join(o3_model.BUILD, "lib", "emulator", "libcuda.so.1")
RUN_SECONDS = 240
UNKNOWN = "is not known"  # what the emulator prints of an instruction


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


@functools.cache
def figures(card):
    printed = subprocess.run([os.path.join(o3_model.BUILD, "bin", "o3c"), "-t", card, "--print-hardware"], check=True, capture_output=True)
    return json.loads(printed.stdout)


def hardware(card, multiprocessors, folder):
    """The figures of a small |card|: a file for o3c, and what compute capability it has."""
    path = os.path.join(folder, f"{card}-{multiprocessors}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**figures(card), "multiprocessors": multiprocessors}, file)
    return path, figures(card)["sm"]


def enter(library, sm, seed):
    """Opens the emulator, which the runtime then finds by its name. |seed|: of the order of threads."""
    os.environ.update({"O3_EMULATOR_KERNELS": f"{library}.kernels", "O3_EMULATOR_SM": str(sm), "O3_SEED": str(seed)})
    ctypes.CDLL(EMULATOR)


def work(library, sm, seed, action):
    with open(f"{library}.printed", "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 2)
    enter(library, sm, seed)
    return action()


def run_apart(library, sm, seed, action):
    """(what |action| gave or None, how it ended if without a result and what it printed)."""
    found, how = apart.call(work, library, sm, seed, action, seconds=RUN_SECONDS, method="fork")
    with open(f"{library}.printed", encoding="utf-8", errors="replace") as file:
        return found, f"{how}\n{file.read()}".strip()


def unknown(printed):
    """The instruction that the emulator does not know, or None."""
    return next((line.split(": ", 2)[-1] for line in printed.splitlines() if line.endswith(UNKNOWN)), None)
