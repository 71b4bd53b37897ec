#!/usr/bin/env python3
"""The emulator suite: kernels for NVIDIA GPUs, run on the CPU by the emulator (emulator.h) and compared.

    run_emulator.py                       some of the points below, drawn anew in each run, and the networks
    run_emulator.py --all                 all points of the numeric suite
    run_emulator.py Conv 'Softmax ['      the points whose labels hold one of these
    run_emulator.py --target ampere       for one card; without it each model gets any of them, and all else runs for each

A point is one of the numeric suite's (test/numeric): its references, its tolerances; many of them are one model. The
card has 1 to 4 multiprocessors, so that small sizes take the kernels of large ones; it has as many as a large one for
products whose tiles are then few (open_batches.py). Each model runs three times in one
session: as written, recorded, replayed. O3_SEED sets the data, the cards, and the order of blocks, warps and
threads. Models without code for the card are skipped, and those whose kernels have an instruction that the emulator
does not know, and what no time was left for; why is told. The last line is "emulator: P passed, F failed, S skipped",
counted in points and, of what is no model of points, in networks, attentions and kernels.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import pickle
import random
import re
import shutil
import sys
import tempfile
import time
import traceback

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "gpu"), os.path.join(os.path.dirname(HERE), "numeric")]

import attention_models
import emulated
import family_network
import faulty_hopper
import faulty_kernels
import gpu_cases
import kernel_draws
import kernel_runs
import numeric_rows
import o3_model
import open_batches
import run_numeric

# Ops with kernels of their own on a card; the others are loops over elements.
TELLING = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Attention", "Softmax", "LogSoftmax", "LayerNormalization",
           "RMSNormalization", "InstanceNormalization", "GroupNormalization", "BatchNormalization", "ReduceMean", "ReduceMax",
           "ReduceSum", "ReduceL2", "ReduceLogSumExp", "ArgMax", "CumSum", "MaxPool", "AveragePool", "GlobalAveragePool",
           "Transpose", "Concat", "Slice", "Pad", "Gather", "GatherND", "ScatterND", "ScatterElements", "Resize", "TopK", "Where",
           "Einsum", "LSTM", "GRU", "Erf", "Gelu", "Cast", "Less", "And", "Not", "Trilu", "t", "s", "y0")
KERNELS = {"ampere": 3, "turing": 2, "volta": 2, "hopper": 8}  # by themselves
ATTENTIONS = 1  # cases of attention_models for a card
ATTENTION_WORK = 3e7  # multiplications of a product
WITH_BFLOAT = ("ampere", "hopper")
LEVEL = 2
POINTS = 16  # in one model
ORDERS = 4  # of blocks, warps and lanes, that a faulty kernel is tried in


# ---- Compiling ----

class Packer(gpu_cases.Packer):
    def make(self, path, library):
        super().make(path, library)
        emulated.translate(path, library, self.level, ("--threads", "1", *self.target))


# ---- Running ----

class Outcome:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], collections.Counter()

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def run_points(path, card, sm, seed):
    """The points of one library."""
    outcome, library = Outcome(), path.replace(".pickle", ".so")
    with open(path, "rb") as file:
        level, cases = pickle.load(file)
    labels = [label for label, *_ in cases]
    if not os.path.exists(f"{library}.kernels"):
        outcome.skipped["no code for the card"] += len(labels)
        return outcome

    results, printed = emulated.run_apart(library, sm, seed, lambda: gpu_cases.library_results(path))
    if emulated.unknown(printed):
        outcome.skipped[emulated.unknown(printed)] += len(labels)
        return outcome
    for label in labels:
        what = results.get((level, label)) if results else "no answer:"
        if what:
            outcome.failed.append(f"FAIL {card} {label}: {what} {printed.strip()[:300]}")
        else:
            outcome.passed += 1
    return outcome


def run_model(index, card, multiprocessors, seed, scratch):
    """Compiles and runs job |index|."""
    folder = tempfile.mkdtemp(dir=scratch)
    path, sm = emulated.hardware(card, multiprocessors, folder)
    outcome = Outcome()
    for _, label, what in gpu_cases.pack_job(index, (LEVEL,), ("--target", card, "--hardware", path), seed, folder, Packer):
        outcome.failed.append(f"FAIL {card} {label}: {what}")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".pickle"):
            outcome.add(run_points(os.path.join(folder, name), f"{card}/{multiprocessors}", sm, seed))
    shutil.rmtree(folder)
    return outcome


def run_translated(outcome, name, translated, run, limit):
    """Adds to |outcome| how |run|, of run_apart's arguments and with an error or None, ends for a library that was |translated|."""
    if not translated:
        outcome.failed.append(f"FAIL {name}: no code for the card")
        return
    error, printed = emulated.run_apart(*run)
    if error is not None and error <= limit:
        outcome.passed += 1
    else:
        outcome.failed.append(f"FAIL {name}: error {error} {printed[:300]}")


def run_network(card, seed, scratch):
    """family_network.py: three runs."""
    folder = tempfile.mkdtemp(dir=scratch)
    _, sm = emulated.hardware(card, 1, folder)
    family_network.pack(folder, card)
    library, outcome = os.path.join(folder, "families.so"), Outcome()
    translated = emulated.translate(os.path.join(folder, "families.onnx"), library, family_network.LEVEL, family_network.options(card))
    run = (library, sm, seed, lambda: float(np.max(family_network.errors(folder))))
    run_translated(outcome, f"{card} family_network", translated, run, family_network.TOLERANCE)
    shutil.rmtree(folder)
    return outcome


def attentions_for(card):
    """The numbers of attention_models' cases that are not too large to emulate, of what the card multiplies."""
    def work_of(case):
        sizes = [size for size in case if not isinstance(size, str)]
        return sizes[0] * sizes[1] * sizes[-3] * sizes[-2] * sizes[-1]

    cases = attention_models.all_cases()
    return [i for i, (case, _) in enumerate(cases) if work_of(case) <= ATTENTION_WORK and (card in WITH_BFLOAT or case[-1] == "fp16")]


def run_attention(index, card, seed, scratch):
    """A case of attention_models.py: three runs."""
    (case, joined), outcome, folder = attention_models.all_cases()[index], Outcome(), tempfile.mkdtemp(dir=scratch)
    path, sm = emulated.hardware(card, 1 + seed % 4, folder)
    model, library = os.path.join(folder, "attention.onnx"), os.path.join(folder, "attention.so")
    name = f"{card} {attention_models.name_of(case, joined)}"
    options = (*attention_models.options(case, card), "--hardware", path)
    attention_models.save(case, joined, model)
    o3_model.compile_model(model, library, attention_models.LEVEL, options)
    translated = emulated.translate(model, library, attention_models.LEVEL, options)
    run = (library, sm, seed, lambda: attention_models.error_of(case, joined, library, seed))
    run_translated(outcome, name, translated, run, attention_models.TOLERANCES[case[-1]])
    shutil.rmtree(folder)
    return outcome


def run_batches(precision, card, products, seed, scratch):
    """open_batches.py, its |products| or the other network."""
    outcome, folder = Outcome(), tempfile.mkdtemp(dir=scratch)
    path, sm = emulated.hardware(card, open_batches.PRODUCT_MULTIPROCESSORS if products else 1 + seed % 4, folder)
    model, library = os.path.join(folder, "batches.onnx"), os.path.join(folder, "batches.so")
    options, rng = ("--target", card, "--hardware", path, "--precision", precision), np.random.default_rng(seed)
    (open_batches.save_products if products else open_batches.save)(model, rng)
    batches = open_batches.PRODUCT_BATCHES if products else open_batches.draw_batches(rng)
    o3_model.compile_model(model, library, open_batches.LEVEL, options)
    translated = emulated.translate(model, library, open_batches.LEVEL, options)
    run = (library, sm, seed, lambda: open_batches.error_of(model, library, batches, seed))
    name = f"{card} open batches{' of long products' if products else ''} {precision}"
    run_translated(outcome, name, translated, run, open_batches.TOLERANCES[precision])
    shutil.rmtree(folder)
    return outcome


def verdict(values, ended, printed, expected):
    """What is wrong with how the kernel ended."""
    right = [values[(i + 33) % len(values)] for i in range(len(values))]
    if expected in (faulty_kernels.GOOD, faulty_kernels.WRONG):
        return "" if ended and (ended == right) == (expected == faulty_kernels.GOOD) else f"gave {ended} {printed}"
    return "" if not ended and expected in printed else f"ended with {ended}, printed '{printed.strip()}'"


def run_faulty(name, seed, scratch):
    """A kernel of faulty_kernels.py. A barrier that is missing shows in one of some orders; all else in each."""
    body, expected = faulty_kernels.KERNELS[name]
    folder, outcome, draw = tempfile.mkdtemp(dir=scratch), Outcome(), random.Random(seed)
    library, found = os.path.join(folder, "faulty"), []
    with open(f"{library}.ll", "w", encoding="utf-8") as file:
        file.write(faulty_kernels.HEAD + body + faulty_kernels.TAIL)
    emulated.link(f"{library}.ll", library)
    for turn in range(ORDERS):
        values = [float(draw.randint(1, 99)) for _ in range(64)]
        ended, printed = emulated.run_apart(library, 80, seed + turn, lambda given=values: (faulty_kernels.launch(emulated.EMULATOR, given),))
        found.append(verdict(values, ended and ended[0], printed, expected))
    wrong = [what for what in found if what]
    if (len(wrong) == ORDERS if expected == faulty_kernels.WRONG else wrong):
        outcome.failed.append(f"FAIL {name}: {wrong[0][:300]}")
    else:
        outcome.passed += 1
    return outcome


def run_kernel(number, card, seed, scratch):
    """A family's kernel by itself (kernel_draws.py)."""
    case, multiprocessors, data = kernel_runs.case_of(number, card, seed)
    outcome = Outcome()
    good, text = kernel_runs.run_case(case, card, multiprocessors, data, scratch)
    if good is None:
        outcome.skipped[text] += 1
    elif good:
        outcome.passed += 1
    else:
        outcome.failed.append(f"FAIL {card} {case.name} (kernel_runs.py --first {number} --count 1): {text}")
    return outcome


def run_kept(number, seed, scratch):
    """A kernel that was wrong once."""
    (case, multiprocessors), outcome = kernel_draws.KEPT[number], Outcome()
    good, text = kernel_runs.run_case(case, "hopper", multiprocessors, seed, scratch)
    if good:
        outcome.passed += 1
    else:
        outcome.failed.append(f"FAIL hopper {case.name} on {multiprocessors}: {text}")
    return outcome


def run_faultless(number, seed, scratch):
    """A kernel of faulty_hopper.py as it is: were it not good, then what is found in it with a fault would say nothing."""
    case, outcome = faulty_hopper.KERNELS[number], Outcome()
    good, text = kernel_runs.run_case(case, "hopper", 1, seed, scratch)
    if good:
        outcome.passed += 1
    else:
        outcome.failed.append(f"FAIL {case.name} without a fault: {text}")
    return outcome


def run_fault(name, seed, scratch):
    """One with a fault, in some orders: one of them has to show it, as it is expected to."""
    case, change, expected = faulty_hopper.fault(name)
    outcome, found = Outcome(), []
    while len(found) < ORDERS:
        good, text = kernel_runs.run_case(case, "hopper", 1, seed + len(found), scratch, change)
        found.append(text)
        if good is False and re.search(expected, text):
            outcome.passed += 1
            return outcome
    outcome.failed.append(f"FAIL {name}: not found, or as another one: {found[-1]}")
    return outcome


# ---- The suite ----

def chosen_points(options):
    points = numeric_rows.all_points()
    if options.labels:
        return [point for point in points if any(part in point.label() for part in options.labels)]
    return points if options.all else [point for point in points if point.label().split(" ")[0].split(",")[0] in TELLING]


def jobs_of(points, draw):
    """Models of few points each, in random order."""
    run_numeric.STATIC_POINTS = POINTS
    draw.shuffle(points)
    jobs = run_numeric.chunks(points)
    draw.shuffle(jobs)
    return jobs


def run_in_time(end, function, arguments):
    outcome = Outcome()
    if time.monotonic() >= end:
        outcome.skipped["no time was left"] += len(gpu_cases.JOBS[arguments[0]][1]) if function is run_model else 1
        return outcome
    try:
        return function(*arguments)
    except Exception:  # pylint: disable=broad-except
        outcome.failed.append(f"FAIL {function.__name__}{arguments}: {traceback.format_exc()}")
        return outcome


def run_until(end, jobs, workers):
    """The outcomes of |jobs|, (function, arguments), as long as there is time to begin one."""
    outcome = Outcome()
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        for future in [pool.submit(run_in_time, end, *job) for job in jobs]:
            outcome.add(future.result())
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="*", help="parts of the labels of the points to run")
    parser.add_argument("--all", action="store_true", help="all points")
    parser.add_argument("--target", choices=emulated.CARDS, help="the card (default: one for each model)")
    parser.add_argument("--models", type=int, default=16, help="of the points (default: 16; with labels or --all no limit)")
    parser.add_argument("--seconds", type=float, help="begin no model after these (default: 120; likewise)")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count()), help="models at a time")
    options = parser.parse_args()
    seed = int(os.environ.get("O3_SEED", random.SystemRandom().randrange(2**31)))
    draw, cards = random.Random(seed), (options.target,) if options.target else emulated.CARDS
    start = time.monotonic()
    os.environ["O3_PTXAS"] = ""
    scratch = tempfile.mkdtemp(prefix="o3-emulator-")
    try:
        whole = options.all or options.labels
        gpu_cases.JOBS[:] = jobs_of(chosen_points(options), draw)[:None if whole else options.models]
        print(f"emulator: {sum(len(points) for _, points in gpu_cases.JOBS)} points, O3_SEED={seed}", flush=True)
        jobs = [] if options.labels else [(run_network, (card, seed, scratch)) for card in cards]
        jobs += [] if options.labels else [(run_faulty, (name, seed, scratch)) for name in faulty_kernels.KERNELS]
        with_hopper = "hopper" in cards and not options.labels
        jobs += [(run_faultless, (number, seed, scratch)) for number in range(len(faulty_hopper.KERNELS)) if with_hopper]
        jobs += [(run_fault, (name, seed, scratch)) for name in faulty_hopper.FAULTS if with_hopper]
        jobs += [] if options.labels else [(run_attention, (index, card, seed, scratch)) for card in cards
                                           for index in (attentions_for(card) if options.all else draw.sample(attentions_for(card), ATTENTIONS))]
        jobs += [] if options.labels else [(run_batches, (precision, card, False, seed, scratch)) for card in cards for precision in ("fp16", "fp32")]
        jobs += [(run_batches, ("fp16", "hopper", True, seed, scratch))] if with_hopper else []
        jobs += [] if options.labels else [(run_kernel, (number, card, seed, scratch)) for card in cards for number in range(KERNELS[card])]
        jobs += [] if options.labels or "hopper" not in cards else [(run_kept, (n, seed, scratch)) for n in range(len(kernel_draws.KEPT))]
        jobs += [(run_model, (index, draw.choice(cards), draw.randint(1, 4), seed, scratch)) for index in range(len(gpu_cases.JOBS))]
        end = start + (options.seconds or (float("inf") if whole else 120))
        outcome = run_until(end, jobs, options.jobs)
    finally:
        shutil.rmtree(scratch)
    for line in outcome.failed:
        print(line)
    for why, count in outcome.skipped.most_common():
        print(f"skipped {count}: {why}")
    print(f"{time.monotonic() - start:.0f} s; to see it again: O3_SEED={seed}")
    print(f"emulator: {outcome.passed} passed, {len(outcome.failed)} failed, {sum(outcome.skipped.values())} skipped")
    return 1 if outcome.failed or not outcome.passed else 0


if __name__ == "__main__":
    sys.exit(main())
