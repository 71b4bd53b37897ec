#!/usr/bin/env python3
"""Random networks, compiled at a random level for a random machine, against float64.

    run_networks.py                      30 seconds of new ones
    run_networks.py --seconds 600        more
    run_networks.py --seed N --count 1   the one of that number again
    run_networks.py --runtime            ONNX Runtime is asked too, about each
    run_networks.py --wide               ops that are seldom in networks, too
    run_networks.py --target hopper      code for a GPU is made, and assembled where ptxas is
    run_networks.py --target gpu         and run on this machine's card
    run_networks.py --target ampere --emulated    and run by the emulator, as a card of 1 to 4 multiprocessors

Network and options follow from the seed alone. One that fails is made smaller as long as it fails; what is left is
kept in the build folder, with a line that says how to see it again. "o3c refuses it" is a failure as well, for all
that is drawn is meant to work. O3_SEED sets where the seeds begin; else the clock does.
"""

import argparse
import collections
import importlib
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from multiprocessing import connection

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before NumPy is read

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "numeric"), os.path.join(os.path.dirname(HERE), "emulator")]

import numpy as np
import onnx

import emulated
import o3_model
from net_draw import draw_net
from net_graph import Unfit, recomputed, with_outputs, without

COMPILE_SECONDS = 60
CPUS = ["cpu", "x86-64", "x86-64-v3"]
FORMATS = ["auto", "auto", "csr", "bsr-4x4", "bsr-16x16", "bsr-2x8", "nm-2:4", "hybrid", "hybrid-4x4", "dense"]

# Of two sizes that only a run knows o3c takes that neither is 1 unless both are, and has the run end otherwise.
GUESSED = "must equal"

OLDER = ("volta", "turing", "sm_70", "sm_75")  # have float32 and float16 only
PRECISIONS = {"fp32": None, "fp16": "f16", "bf16": "bf16", "tf32": "tf32"}  # o3c's name, and net_graph's

# multiprocessors: of the emulated card; 0: there is none. order: the seed of the order of its threads.
How = collections.namedtuple("How", "level target options threads multiprocessors order", defaults=(0,))


def draw_how(rng, target, is_emulated):
    level = rng.choice([0, 1, 2, 3, 3, 3])
    options = ["--no-fusion"] if rng.random() < 0.05 else []
    if level == 3 and target is None:
        options += ["--sparse-format", rng.choice(FORMATS)]
    if target:
        precisions = ["fp32", "fp16"] + ([] if target in OLDER else ["bf16", "tf32"])
        return How(max(level, 1), target, [*options, "--precision", rng.choice(precisions)], 1,
                   rng.randint(1, 4) if is_emulated else 0)
    return How(level, rng.choice(CPUS), options, rng.choice([1, 1, 2, 3]), 0)


def described(how):
    return " ".join([f"-O{how.level} --target {how.target}", *how.options, f"({how.threads} threads)"] + [f"({how.multiprocessors} multiprocessors)"] * bool(how.multiprocessors))


def runtime_results(net, path, trial):
    """ONNX Runtime's outputs, or None where it has no kernel for this, or crashes as on products of nothing."""
    import onnxruntime

    if any(0 in three[0].shape for three in net.trials[trial].values()):
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return session.run(None, {name: item.arrays[trial] for name, item in net.inputs.items()})
    except Exception:
        return None


def compared(net, trial, results):
    return next(filter(None, (net.difference(trial, name, got) for name, got in zip(net.outputs, results))), None)


def enter_emulator(how, path, library, options):
    """Adds the card to |options|."""
    figures, sm = emulated.hardware(how.target, how.multiprocessors, os.path.dirname(path))
    options += ["--hardware", figures]
    emulated.translate(path, library, how.level, options)
    emulated.enter(library, sm, how.order)


def failure(net, how, folder, runtime=False):
    """None, or (what kind, what is wrong)."""
    path, library = os.path.join(folder, "net.onnx"), os.path.join(folder, "net.so")
    onnx.save(net.model(), path)
    if runtime and net.kind == "f32":  # in float64 some of its kernels use constants of float32
        for trial in range(len(net.trials)):
            results = runtime_results(net, path, trial)
            what = results and compared(net, trial, results)
            if what:
                return "reference", f"ONNX Runtime: {what}"
    options = ["--target", how.target, "-j", "1", *how.options]
    try:
        if how.multiprocessors:
            enter_emulator(how, path, library, options)
        o3_model.compile_model(path, library, how.level, options, COMPILE_SECONDS)
    except o3_model.O3Error as error:
        return ("refused" if error.code != "crash" else "crash"), f"o3c: {error.code}: {error}"
    if how.target not in (*CPUS, "gpu") and not how.multiprocessors:
        return None
    session = o3_model.Model(library).session(threads=how.threads)
    for trial in [*range(len(net.trials)), 0]:
        try:
            results = session.run([net.inputs[name].arrays[trial] for name, _, _ in session.model.inputs])
        except o3_model.O3Error as error:
            if len(net.trials) > 1 and GUESSED in str(error):
                return "skipped", str(error)
            return "run", f"trial {trial}: {error}"
        what = compared(net, trial, results)
        if what:
            return "wrong", f"trial {trial}: {what}"
    return None


def built(seed, options):
    rng = random.Random(seed)
    how = draw_how(rng, options.target, options.emulated)
    rounded = PRECISIONS[how.options[-1]] if options.target else None
    net = draw_net(rng, np.random.default_rng(seed), rounded)
    return net, how._replace(order=rng.randrange(2**31)) if options.emulated else how


# ---- Each network in a process of its own ----

def work(sender, function, *rest):
    folder = tempfile.mkdtemp(prefix="o3-nets-")
    try:
        sender.send(function(folder, *rest))
    except Exception:
        sender.send(("tester", traceback.format_exc()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def started(function, *rest):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=work, args=(sender, function, *rest))
    process.start()
    sender.close()
    return receiver, process


def ended(receiver, process):
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        result = "crash", f"the compiled network ended the process with {process.exitcode}"
    process.join()
    receiver.close()
    return result


def late(seconds):
    return "timeout", f"no end after {seconds:g} s"


def apart(seconds, function, *rest):
    receiver, process = started(function, *rest)
    in_time = receiver.poll(seconds)
    if not in_time:
        process.kill()
    result = ended(receiver, process)
    return result if in_time else late(seconds)


def check_seed(folder, seed, options):
    net, how = built(seed, options)
    return failure(net, how, folder, options.runtime) if net else ("none", "")


def check_net(folder, net, how, runtime):
    return failure(net, how, folder, runtime)


# ---- Making it smaller ----

def candidates(net):
    if len(net.outputs) > 1:
        for name in net.outputs:
            yield lambda n=name: with_outputs(net, [n])
    for index in range(len(net.nodes)):
        yield lambda i=index: without(net, i)
    for node in net.nodes[:-1]:
        yield lambda n=node: with_outputs(net, n.outputs[:1])


def shrunk(net, how, kind, options):
    until = time.monotonic() + options.shrink
    again = True
    while again:
        again = False
        for make in candidates(net):
            if time.monotonic() > until:
                return net
            try:
                smaller = recomputed(make())
            except Unfit:
                continue
            result = smaller.nodes and apart(options.limit, check_net, smaller, how, options.runtime)
            if result and result[0] == kind:
                net, again = smaller, True
                break
    return net


def node_line(net, node):
    shapes = (f"{x}{list(net.trials[0][x][0].shape)}" if x else "-" for x in node.inputs)
    return f"  {', '.join(node.outputs)} = {node.op} {node.attrs or ''} {', '.join(shapes)}"


def reported(folder, seed, what, options):
    """A failure as text; the network is kept."""
    net, how = built(seed, options)
    lines = [f"networks: seed {seed}, {described(how)}: {what[0]}: {what[1]}"]
    if what[0] == "tester":
        return lines[0]
    if options.shrink:
        net = shrunk(net, how, what[0], options)
        lines.append(f"  smaller: {apart(options.limit, check_net, net, how, options.runtime)[1]}")
    stem = os.path.join(options.keep, f"net{seed}")
    os.makedirs(options.keep, exist_ok=True)
    onnx.save(net.model(), stem + ".onnx")
    np.savez(stem + ".npz", **{name: item.arrays[0] for name, item in net.inputs.items()})
    lines += [node_line(net, node) for node in net.nodes]
    again = f"test/fuzz/run_networks.py --seed {seed} --count 1" + (" --wide" if options.wide else "") + (f" --target {options.target}" if options.target else "") + " --emulated" * options.emulated
    return "\n".join([*lines, f"  kept: {stem}.onnx; again: {again}"])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("O3_SEED") or time.time_ns() // 1000 % 10**9))
    parser.add_argument("--seconds", type=float, default=30, help="how long new networks are begun")
    parser.add_argument("--count", type=int, default=10**9, help="of networks, at most")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="networks at a time")
    parser.add_argument("--runtime", action="store_true", help="compare ONNX Runtime, too")
    parser.add_argument("--wide", action="store_true", help="draw ops that are seldom in networks, too")
    parser.add_argument("--target", help="a GPU of o3c's list")
    parser.add_argument("--emulated", action="store_true", help="run the GPU's code by the emulator")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a network may take")
    parser.add_argument("--shrink", type=float, default=60, help="seconds to make one that fails smaller")
    parser.add_argument("--keep", default=os.path.join(o3_model.BUILD, "networks"), help="folder for those that fail")
    options = parser.parse_args()
    if options.emulated and not options.target:
        parser.error("--emulated: --target has to say which card")
    return options


class Pool:
    """The processes that are at work: |running| has what each is about, by where its result comes from."""

    def __init__(self, options):
        self.options, self.running, self.seed = options, {}, options.seed
        self.until = time.monotonic() + options.seconds

    def begin(self, seed, what):
        """To check a seed, or after it has failed to report it: to shrink it, of which the last try may begin at the end,
        and to check what is left."""
        function, *rest = (check_seed, seed, self.options) if what is None else (reported, seed, what, self.options)
        seconds = self.options.shrink + 3 * self.options.limit if what else self.options.limit
        receiver, process = started(function, *rest)
        self.running[receiver] = seed, what, process, seconds, time.monotonic() + seconds

    def has_more(self):
        return self.seed - self.options.seed < self.options.count and time.monotonic() < self.until

    def fill(self):
        while self.has_more() and len(self.running) < self.options.jobs:
            self.begin(self.seed, None)
            self.seed += 1

    def results(self):
        """(seed, what it had failed with or None, what came) of those that have ended."""
        for receiver in connection.wait(list(self.running), 1):
            seed, what, process, *_ = self.running.pop(receiver)
            yield seed, what, ended(receiver, process)
        for receiver, (seed, what, process, seconds, end) in list(self.running.items()):
            if time.monotonic() > end:
                del self.running[receiver]
                process.kill()
                ended(receiver, process)
                yield seed, what, late(seconds)


def main():
    options = arguments()
    warnings.simplefilter("ignore")  # NumPy's, about means of nothing
    if options.wide:
        importlib.import_module("net_draw_rare")  # adds to what is drawn, as what it imports does
    print(f"networks: seeds from {options.seed}", flush=True)
    pool, passed, failed, skipped = Pool(options), 0, 0, 0
    while pool.running or pool.has_more():
        pool.fill()
        for seed, what, result in pool.results():
            if what:
                print(result if isinstance(result, str) else f"networks: seed {seed}: {what}, then {result}", flush=True)
            elif result is None:
                passed += 1
            elif result[0] == "skipped":
                skipped += 1
            elif result[0] != "none":
                failed += 1
                pool.begin(seed, result)
    print(f"networks: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
