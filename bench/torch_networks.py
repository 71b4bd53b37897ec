#!/usr/bin/env python3
"""torch_networks.py [--write FILE] [--only TEXT] [--modes eager,compile,max-autotune] [--open]: networks beside PyTorch, on a card.

ResNet-50, MobileNetV2 and BERT-base (128 tokens) in fp16, at several batch sizes: ours compiled by o3c for this machine's
card from the models that the tests make, the same networks of torchvision and transformers in eager mode, by torch.compile
and by torch.compile(mode="max-autotune-no-cudagraphs"), images with the channels last. Inputs and results lie on the
card, and every contestant is a CUDA graph that is replayed, ours by its session. Time is the wall clock's for a series of
replays with one wait at its end; of the medians of the series, one in each order of the contestants, the better one.
Ours takes float32 and converts it. Its error is that of the result's norm against ONNX Runtime in float32, for 8 inputs
at most. Then LayerNorm, GELU and a product, as O3 and O1 compile it. --write puts the rows measured into FILE's sections;
--only measures those whose name and batch, as in "BERT-base 8", have the text.

--open measures the same networks with the batch left open instead: one library for all batches beside those of one batch
and torch.compile(dynamic=True), of which one network serves all batches, too, but those of one image or text, for which PyTorch
compiles again.
"""
import argparse
import ctypes
import os
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "test", folder) for folder in ("numeric", "models")]
import numpy as np  # noqa: E402
import torch  # noqa: E402

import bench_networks  # noqa: E402
import bench_tables  # noqa: E402
import o3_model  # noqa: E402
import test_networks  # noqa: E402

HEADING, CHAINS, OPEN = "## Networks", "## Levels of o3c", "## Networks with an open batch"
MODES = {"eager": None, "compile": "default", "max-autotune": "max-autotune-no-cudagraphs"}
SERIES, REFERENCES, TOKENS = 5, 8, 128
ON_CARD = 1  # o3_place_t


def torch_image_network(name):
    import torchvision

    return getattr(torchvision.models, name)(weights=None).eval().half().cuda().to(memory_format=torch.channels_last)


def torch_bert(_name):
    import transformers

    return transformers.BertModel(transformers.BertConfig()).eval().half().cuda()


def image_feeds(batch):
    return test_networks.images(batch, 224, 224)


def image_inputs(feeds):
    image = torch.from_numpy(feeds["image"]).cuda().half().contiguous(memory_format=torch.channels_last)
    return {"x": image}, lambda network, given: network(given["x"])


def token_inputs(feeds):
    return {name: torch.from_numpy(array).cuda() for name, array in feeds.items()}, lambda network, given: network(**given)


# title: the test's network, batch sizes, feeds, PyTorch's network and how it is fed
NETWORKS = {
    "ResNet-50": ("resnet50", (1, 8, 64), image_feeds, lambda: torch_image_network("resnet50"), image_inputs),
    "MobileNetV2": ("mobilenetv2", (1, 8, 64), image_feeds, lambda: torch_image_network("mobilenet_v2"), image_inputs),
    "BERT-base": ("bert", (1, 8, 32), lambda batch: test_networks.sentences(batch, TOKENS), lambda: torch_bert("bert"),
                  token_inputs),
}


class CardSession:
    """A compiled model with inputs and results on the card, in a stream of its own. Sizes that its results leave open are
    the batch."""

    def __init__(self, library, feeds):
        self.model = o3_model.Model(library)
        self.stream = torch.cuda.Stream()
        self.pointer = ctypes.c_void_p()
        options = o3_model.SessionOptions(stream=self.stream.cuda_stream)
        if self.model.api.session_create(self.model.pointer, ctypes.byref(options), ctypes.byref(self.pointer)):
            raise o3_model.O3Error("run", self.model.api.last_error().decode())
        self.inputs = [torch.as_tensor(feeds[name]).contiguous().cuda() for name, _, _ in self.model.inputs]
        batch = len(self.inputs[0])
        self.results = [torch.full([size if isinstance(size, int) else batch for size in shape], float("nan"), device="cuda",
                                   dtype=getattr(torch, np.dtype(dtype).name)) for _, dtype, shape in self.model.outputs]
        self.given = self.tensors(self.inputs)
        torch.cuda.synchronize()

    @staticmethod
    def tensors(values):
        made = (o3_model.Tensor * len(values))()
        for tensor, value in zip(made, values):
            dtype = np.dtype(str(value.dtype).removeprefix("torch."))
            tensor.data, tensor.dtype = value.data_ptr(), o3_model.NUMBERS[dtype]
            tensor.rank, tensor.place = value.dim(), ON_CARD
            tensor.shape[:value.dim()] = value.shape
        return made

    def run_inside(self):
        """Leaves the results in the session's own memory on the card, where nothing copies them from."""
        wanted = (o3_model.Tensor * len(self.results))()
        for tensor in wanted:
            tensor.place = ON_CARD
        self.run(wanted)

    def run(self, wanted=None):
        api, wanted = self.model.api, wanted or self.tensors(self.results)
        if api.session_run(self.pointer, self.given, len(self.inputs), wanted, len(self.results)):
            raise o3_model.O3Error("run", api.session_error(self.pointer).decode())

    def close(self):
        self.model.api.session_destroy(self.pointer)


def graph_of(function):
    """A replay of what |function| launches."""
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                function()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
    return graph.replay


def milliseconds(contestant, seconds=0.1):
    """Of a call, the median of the series, each of about |seconds|."""
    for _ in range(3):
        contestant()
    torch.cuda.synchronize()
    start = time.perf_counter()
    contestant()
    torch.cuda.synchronize()
    count = max(10, min(200, int(seconds / (time.perf_counter() - start))))
    found = []
    for _ in range(SERIES):
        start = time.perf_counter()
        for _ in range(count):
            contestant()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) / count * 1e3)
    return statistics.median(found)


def compare(contestants, seconds=0.1):
    times = {name: [] for name in contestants}
    for order in (list(contestants), list(reversed(contestants))):
        for name in order:
            times[name].append(milliseconds(contestants[name], seconds))
    return {name: min(values) for name, values in times.items()}


def compile_for_card(model, folder, feeds, level=3, open_batch=False):
    """The library, named for its model, batch and level, since a path is loaded once; and the seconds that it took."""
    batch = "?" if open_batch else len(next(iter(feeds.values())))
    shapes = [f"--shape={name}:{'x'.join(map(str, (batch, *array.shape[1:])))}" for name, array in feeds.items()]
    library = os.path.join(folder, f"{os.path.basename(model)}-{batch}-O{level}.so")
    start = time.perf_counter()
    o3_model.compile_model(model, library, level, ("--target", "gpu", "--precision", "fp16", *shapes))
    return library, time.perf_counter() - start


def error_of(model, feeds, session):
    try:
        import onnxruntime
    except ImportError:
        return "-"
    peer = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    expected = peer.run(None, {name: array[:REFERENCES] for name, array in feeds.items()})[0].astype(np.float64)
    got = session.results[0][:len(expected)].double().cpu().numpy()
    return f"{np.linalg.norm(got - expected) / np.linalg.norm(expected):.1e}"


def row(title, batch, folder, modes):
    """The cells: ours, PyTorch's in the modes, the fastest's ratio to ours, the error and the seconds to compile."""
    name, _, make_feeds, make_torch, make_inputs = NETWORKS[title]
    model, feeds = test_networks.NETWORKS[name][0](), make_feeds(batch)
    library, seconds = compile_for_card(model, folder, feeds)
    session = CardSession(library, feeds)
    session.run()
    torch.cuda.synchronize()
    error = error_of(model, feeds, session)
    network = make_torch()
    given, call = make_inputs(feeds)
    contestants = {"ours": session.run}
    for mode in modes:
        torch._dynamo.reset()
        compiled = network if MODES[mode] is None else torch.compile(network, mode=MODES[mode], dynamic=False)
        contestants[mode] = graph_of(lambda compiled=compiled: call(compiled, given))
    times = compare(contestants)
    session.close()
    os.unlink(library)
    taken = [f"{times[name]:.3f}" if name in times else "-" for name in ("ours", *MODES)]
    return [title, batch, *taken, f"{min(times[mode] for mode in modes) / times['ours']:.2f}", error, f"{seconds:.1f}"]


def open_rows(title, folder, only):
    """Rows of cells, one for each batch size: the library of that batch, the one for all, PyTorch's network for all, the
    ratios of the first and the last to ours for all, and its error."""
    name, batches, make_feeds, make_torch, make_inputs = NETWORKS[title]
    batches = [batch for batch in batches if only in f"{title} {batch}"]
    if not batches:
        return
    model = test_networks.NETWORKS[name][0]()
    library, _ = compile_for_card(model, folder, make_feeds(batches[0]), open_batch=True)
    torch._dynamo.reset()
    network = torch.compile(make_torch(), dynamic=True)
    for batch in batches:
        feeds = make_feeds(batch)
        fixed, _ = compile_for_card(model, folder, feeds)
        sessions = {"fixed": CardSession(fixed, feeds), "open": CardSession(library, feeds)}
        sessions["open"].run()
        torch.cuda.synchronize()
        error = error_of(model, feeds, sessions["open"])
        given, call = make_inputs(feeds)
        contestants = {key: session.run for key, session in sessions.items()}
        contestants["dynamic"] = graph_of(lambda: call(network, given))
        times = compare(contestants)
        for session in sessions.values():
            session.close()
        os.unlink(fixed)
        yield [title, batch, *(f"{times[key]:.3f}" for key in contestants), f"{times['open'] / times['fixed']:.2f}",
               f"{times['dynamic'] / times['open']:.2f}", error]
    os.unlink(library)


def chain_row(name, folder):
    import onnx

    model, feeds = bench_networks.get(name)
    path = os.path.join(folder, f"{name}.onnx")
    onnx.save(model, path)
    sessions = {f"O{level}": CardSession(compile_for_card(path, folder, feeds, level)[0], feeds) for level in (3, 1)}
    times = compare({level: session.run for level, session in sessions.items()})
    for session in sessions.values():
        session.close()
    return [name, *(f"{time * 1e3:.1f}" for time in times.values()), f"{times['O1'] / times['O3']:.2f}"]


def line(lines, *cells):
    lines.append("| " + " | ".join(map(str, cells)) + " |")
    print(lines[-1], flush=True)


def head(lines, *cells):
    line(lines, *cells)
    lines.append("|" + "-|" * len(cells))


def networks(lines, folder, modes, only):
    lines += [f"fp16, ms, one {torch.cuda.get_device_name()}, PyTorch {torch.__version__}; written by bench/torch_networks.py, "
              "which says how.", ""]
    head(lines, "network", "batch", "ours", *MODES, "fastest : ours", "error", "compile, s")
    for title, (_, batches, *_) in NETWORKS.items():
        for batch in batches:
            if only in f"{title} {batch}":
                line(lines, *row(title, batch, folder, modes))


def open_networks(lines, folder, only):
    lines += [f"fp16, ms, one {torch.cuda.get_device_name()}, PyTorch {torch.__version__}; written by bench/torch_networks.py "
              "--open, which says how.", ""]
    head(lines, "network", "batch", "fixed", "open", "torch.compile(dynamic=True)", "open : fixed", "PyTorch : open", "error")
    for title in NETWORKS:
        for cells in open_rows(title, folder, only):
            line(lines, *cells)


def chains(lines, folder, only):
    if not any(only in name for name in bench_networks.CHAINS):
        return
    lines += ["LayerNorm, GELU and a product, as O3 and as O1 compile it, us:", ""]
    head(lines, "rows x width x columns", "O3", "O1", "O1 : O3")
    for name in bench_networks.CHAINS:
        if only in name:
            line(lines, *chain_row(name, folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="")
    parser.add_argument("--modes", default=",".join(MODES), help="of PyTorch, with commas (default %(default)s)")
    parser.add_argument("--open", action="store_true", help="with the batch left open, beside those of one batch")
    options = parser.parse_args()
    modes = options.modes.split(",")
    if unknown := set(modes) - set(MODES):
        parser.error(f"--modes: {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    torch.backends.cudnn.benchmark = True
    with tempfile.TemporaryDirectory(prefix="o3-bench-") as folder, torch.no_grad():
        sections = [(HEADING, lambda lines: networks(lines, folder, modes, options.only), 2),
                    (CHAINS, lambda lines: chains(lines, folder, options.only), 1)]
        if options.open:
            sections = [(OPEN, lambda lines: open_networks(lines, folder, options.only), 2)]
        for heading, fill, keys in sections:
            lines = []
            fill(lines)
            if options.write and any(line.startswith("|") for line in lines[4:]):
                bench_tables.write(options.write, heading, lines, keys)
    return 0


if __name__ == "__main__":
    sys.exit(main())
