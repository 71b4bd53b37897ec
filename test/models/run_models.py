#!/usr/bin/env python3
"""Whole networks against ONNX Runtime: each is compiled at O0 and at O3, and one library runs all sizes.

    run_models.py                   all networks
    run_models.py resnet50 ocr      some; "ocr" is the reading of a rendered line of text
    run_models.py --level 1         one level only

The last line is "models: P passed, F failed, S skipped": one test is a network at one level with one input, or one
compilation that failed.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "numeric"))

import o3_model
import ocr_text
import test_networks

RTOL, ATOL = 1e-3, 1e-4
LEVELS = (0, 1, 3)
USUAL_LEVELS = (0, 3)  # the ONNX suite runs whole networks at O1
TEXTS = ["Sparse networks, compiled ahead of time", "Total: 1299.50 EUR"]
STEPS = ("ppocr_det", "ppocr_rec")


class Tally:
    def __init__(self):
        self.counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}

    def say(self, verdict, what):
        self.counts[verdict] += 1
        print(f"{verdict} {what}", flush=True)


def reference(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = os.cpu_count()
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def difference(got, want):
    """(None or how they differ, the largest absolute error)."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} came, {want.dtype}{list(want.shape)} was expected", np.inf
    error = np.abs(got.astype(np.float64) - want)
    bad = ~(error <= ATOL + RTOL * np.abs(want))
    worst = float(error.max(initial=0))
    return (f"{int(bad.sum())} of {bad.size} elements differ, the worst by {worst:.3g}" if bad.any() else None), worst


def compile_network(path, level, scratch, options=()):
    """The library, and the seconds that it took; one of the same network that is in |scratch| already is taken."""
    library = os.path.join(scratch, f"{os.path.basename(path)}-O{level}.so")
    start = time.monotonic()
    if not os.path.exists(library):
        o3_model.compile_model(path, library, level, options)
    return library, time.monotonic() - start


def check_network(name, levels, scratch, tally):
    get, feeds, _ = test_networks.NETWORKS[name]
    path = get()
    session = reference(path)
    expected = [session.run(None, feed) for feed in feeds]
    del session
    for level in levels:
        try:
            library, seconds = compile_network(path, level, scratch, test_networks.OPTIONS.get(name, ()))
        except o3_model.O3Error as error:
            tally.say("FAIL", f"{name} O{level}: o3c: {error.code}: {error}")
            continue
        ours = o3_model.Model(library).session()
        for feed, wanted in zip(feeds, expected):
            shapes = " ".join(str(list(array.shape)) for array in feed.values())
            check_run(f"{name} O{level} {shapes}", ours, feed, wanted, seconds, tally)
        if name not in STEPS:  # those are read with, too
            os.unlink(library)


def check_run(what, ours, feed, wanted, compile_seconds, tally):
    start = time.monotonic()
    try:
        results = ours.run_named(feed)
    except o3_model.O3Error as error:
        tally.say("FAIL", f"{what}: {error}")
        return
    seconds = time.monotonic() - start
    found = [difference(got, want) for got, want in zip(results, wanted)]
    wrong = [f"output {i}: {text}" for i, (text, _) in enumerate(found) if text]
    if wrong:
        tally.say("FAIL", f"{what}: {'; '.join(wrong)}")
    else:
        worst = max(error for _, error in found)
        tally.say("PASS", f"{what}: largest error {worst:.2g}, {seconds:.2f} s, compiled in {compile_seconds:.1f} s")


def read_text(text, detect, recognise, characters):
    """(the text that is read, the tensors on the way)."""
    image = ocr_text.picture(text)
    found = detect(ocr_text.detector_input(image))
    scores = recognise(ocr_text.line_input(image, ocr_text.text_box(found)))
    return ocr_text.decode(scores, characters), (found, scores)


def check_ocr(levels, scratch, tally):
    paths = [test_networks.ocr(name) for name in STEPS]
    characters = ocr_text.alphabet(onnx.load(paths[1]))
    theirs = [lambda x, s=reference(path): s.run(None, {"x": x})[0] for path in paths]
    expected = {text: read_text(text, *theirs, characters) for text in TEXTS}
    for level in levels:
        try:
            models = [o3_model.Model(compile_network(path, level, scratch)[0]) for path in paths]
        except o3_model.O3Error as error:
            tally.say("FAIL", f"ocr O{level}: o3c: {error.code}: {error}")
            continue
        ours = [lambda x, s=model.session(): s.run([x])[0] for model in models]
        for text in TEXTS:
            check_reading(f"ocr O{level} '{text}'", text, ours, characters, expected[text], tally)


def check_reading(what, text, ours, characters, expected, tally):
    try:
        reading, tensors = read_text(text, *ours, characters)
    except (o3_model.O3Error, ValueError) as error:
        tally.say("FAIL", f"{what}: {error}")
        return
    wrong = [difference(got, want)[0] for got, want in zip(tensors, expected[1])]
    if reading != text:
        tally.say("FAIL", f"{what}: read '{reading}' (ONNX Runtime: '{expected[0]}')")
    elif any(wrong):
        tally.say("FAIL", f"{what}: {next(filter(None, wrong))}")
    else:
        tally.say("PASS", f"{what}: read back")


def work(name, levels, scratch, sender):
    tally = Tally()
    try:
        if name == "ocr":
            check_ocr(levels, scratch, tally)
        else:
            check_network(name, levels, scratch, tally)
    except test_networks.Unavailable as error:
        tally.say("SKIP", f"{name}: {error}")
    sender.send(tally.counts)


def run_apart(name, levels, scratch, total):
    """In a process of its own: one that crashes is one failure."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=work, args=(name, levels, scratch, sender))
    process.start()
    sender.close()
    try:
        for verdict, count in receiver.recv().items():
            total.counts[verdict] += count
    except EOFError:
        process.join()
        total.say("FAIL", f"{name}: the process ended with {process.exitcode}")
    process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*test_networks.NETWORKS, "ocr"]
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--level", type=int, choices=LEVELS)
    options = parser.parse_args()
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"unknown network {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    total = Tally()
    scratch = tempfile.mkdtemp(prefix="o3-models-")
    try:
        for name in options.names or known:
            run_apart(name, USUAL_LEVELS if options.level is None else (options.level,), scratch, total)
    finally:
        shutil.rmtree(scratch)
    counts = total.counts
    print(f"models: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
