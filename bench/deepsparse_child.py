"""DeepSparse in a process of its own, whose Python has the old NumPy that it wants: see bench_peers.deepsparse_model.

    python deepsparse_child.py MODEL THREADS FEEDS.npz OUTPUTS.npz

Writes the outputs of a run and "ready", then runs once for each line that it reads, and answers with a line each.
"""

import sys

import numpy as np
from deepsparse import Engine


def main():
    model, threads, feeds, outputs = sys.argv[1:]
    loaded = np.load(feeds)
    given = [loaded[name] for name in sorted(loaded.files, key=int)]
    engine = Engine(model=model, batch_size=given[0].shape[0], num_cores=int(threads))
    np.savez(outputs, *engine.run(given))
    print("ready", flush=True)
    for _ in sys.stdin:
        engine.run(given, val_inp=False)
        print("done", flush=True)


if __name__ == "__main__":
    main()
