#!/usr/bin/env python3
"""check_kernels.py FOLDER: runs the fast kernels in FOLDER (see gpu_kernels.c) on the card and compares with float64, then those
of older cards in folders of their names, as the driver compiles them for this one.

The inputs are random (seed in O3_SEED), the result is full of NaN before; the measure is the relative error in the
Frobenius norm. The last line is `gpu-kernels: P passed, F failed, S skipped`. Needs PyTorch; without it or without a card all are skipped.
"""
import os
import random
import sys

import kernel_cases

try:
    import torch
except ImportError:
    torch = None


def make_arguments(case, seed):
    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32, "i64": torch.int64,
             "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    generator = torch.Generator(device="cuda").manual_seed(seed)
    entries = case.arguments[0][0][0]
    tensors = [torch.randint(-entries, entries, shape, generator=generator, device="cuda", dtype=types[kind])
               if kind[0] == "i" else torch.randn(shape, generator=generator, device="cuda").to(types[kind])
               for shape, kind in case.arguments]
    tensors[-1].fill_(float("nan"))
    return tensors


def relative_error(case, seed, folder):
    from gpu_driver import Kernel

    tensors = make_arguments(case, seed)
    kernel = Kernel(os.path.join(folder, case.name))
    kernel.bind(tensors)
    kernel.launch()
    torch.cuda.synchronize()
    expected = case.reference(torch, *[t.float().double() for t in tensors[:-1]])
    got = tensors[-1].double().reshape(expected.shape)
    kernel.close()
    error = ((got - expected).norm() / expected.norm()).item()
    return error if error == error else float("inf")


def main():
    folder = sys.argv[1]
    if not torch or not torch.cuda.is_available():
        print(f"SKIP: no {'card' if torch else 'PyTorch'} here")
        print(f"gpu-kernels: 0 passed, 0 failed, {len(kernel_cases.checked())} skipped")
        return 0
    runs = [(folder, case) for case in kernel_cases.checked()]
    runs += [(os.path.join(folder, card), case) for card in kernel_cases.WARP_CARDS for case in kernel_cases.checked_on(card)]
    seed = int(os.environ.get("O3_SEED", random.randrange(1 << 30)))
    passed = failed = skipped = 0
    print(f"seed {seed}")
    for place, case in runs:
        if not os.path.exists(os.path.join(place, case.name + ".json")):
            skipped += 1
            continue
        error = relative_error(case, seed, place)
        good = error <= case.tolerance
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} {os.path.relpath(os.path.join(place, case.name), folder):60} {error:.2e} (at most {case.tolerance:.0e})", flush=True)
    print(f"gpu-kernels: {passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
