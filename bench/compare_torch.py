#!/usr/bin/env python3
"""compare_torch.py FOLDER [--tables products,rows] [--write FILE]: the fast kernels in FOLDER (made by gpu_kernels) beside PyTorch, on a card.

Each contestant is a CUDA graph; its time is the median of its replays. A replay of one follows a replay of the other, since
a card gets slower as it gets warm. Products are compared with torch.matmul (cuBLAS) and, with a bias and
GELU, with torch._addmm_activation (cublasLt, fused; its GELU is the tanh form); rows and chains with eager mode,
torch.compile and torch.compile(mode="max-autotune-no-cudagraphs"); convolutions with cuDNN, its choice by trial. --write
puts the tables into their sections of FILE. All take about six minutes, products alone one.
"""
import argparse
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "gpu"))
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import bench_tables  # noqa: E402
import kernel_cases  # noqa: E402
from check_kernels import make_arguments  # noqa: E402
from gpu_driver import Graph, Kernel, replay_time  # noqa: E402

COMPILE_MODES = {"compile": "default", "max-autotune": "max-autotune-no-cudagraphs"}
# LayerNorm, GELU, then a product: rows, width, columns.
CHAINS = [(128, 768, 3072), (2048, 1024, 4096), (8192, 1024, 4096), (16384, 4096, 1024)]
ATTENTION_TOLERANCE = 5e-3  # of the difference's norm, fp16 beside fp16


def compare(contestants, launches, turns=16):
    """Microseconds of each, medians. A replay of one follows a replay of another, every other turn in the reverse order:
    the card's clock depends on what it did in the last milliseconds, and is then the same for all."""
    graphs = {name: Graph(run, launches) for name, run in contestants.items()}
    times = {name: [] for name in graphs}
    for turn in range(turns):
        for name in list(graphs)[:: -1 if turn % 2 else 1]:
            times[name].append(graphs[name].time())
    return {name: statistics.median(values) for name, values in times.items()}


def bound(folder, name, tensors):
    kernel = Kernel(os.path.join(folder, name))
    kernel.bind(tensors)
    return kernel


def compiled(function):
    torch._dynamo.reset()
    return {name: torch.compile(function, mode=mode, dynamic=False) for name, mode in COMPILE_MODES.items()}


def line(lines, *cells):
    lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    print(lines[-1], flush=True)


def head(lines, *cells):
    line(lines, *cells)
    lines.append("|" + "-|" * len(cells))


def products(folder, lines):
    head(lines, "product", "ours, us", "TFLOP/s", "cuBLAS, us", "ratio")
    logs = []
    for case in kernel_cases.timed():
        if case.bar != "gemm":
            continue
        m, n, k, epilogue, _, by_rows, _ = case.sizes
        tensors = make_arguments(case, 1)
        b = tensors[1] if by_rows else tensors[1].transpose(-1, -2)
        peers = {"none": lambda: torch.matmul(tensors[0], b, out=tensors[-1]),
                 "biasgelu": lambda: torch._addmm_activation(tensors[2], tensors[0], b, use_gelu=True)}
        kernel = bound(folder, case.name, tensors)
        operations = 2.0 * m * n * k
        times = compare({"peer": peers[epilogue], "ours": kernel.launch}, 5 if operations > 2e10 else 20)
        if (m, n, k) in kernel_cases.NETWORK_PRODUCTS and epilogue == "none" and by_rows:
            logs.append(times["peer"] / times["ours"])
        label = f"{m} x {n} x {k}{'' if by_rows else ', B by columns'}{', bias and GELU' if epilogue != 'none' else ''}"
        line(lines, label, f"{times['ours']:.2f}", f"{operations / times['ours'] / 1e6:.0f}", f"{times['peer']:.2f}",
             f"{times['peer'] / times['ours']:.2f}")
        kernel.close()
    mean = torch.tensor(logs).log().mean().exp().item()
    lines += ["", f"The {len(logs)} products of BERT and ResNet-50: geometric mean {mean:.2f}, worst {min(logs):.2f}."]
    print(lines[-1])


def long_products(folder, lines):
    """As the family chooses, beside a cluster's blocks and as many through memory (stream-K) that share a tile's k."""
    head(lines, "product", "ours, us", "in clusters", "stream-K", "cuBLAS, us", "ratio")
    for ways in kernel_cases.long_products():
        m, n, k = ways["ours"].sizes[:3]
        tensors = make_arguments(ways["ours"], 1)
        kernels = {name: bound(folder, case.name, tensors) for name, case in ways.items()}
        times = compare({"peer": lambda: torch.matmul(tensors[0], tensors[1], out=tensors[-1]),
                         **{name: kernel.launch for name, kernel in kernels.items()}}, 20)
        line(lines, f"{m} x {n} x {k}", *(f"{times[name]:.2f}" for name in ("ours", "clusters", "streams", "peer")),
             f"{times['peer'] / times['ours']:.2f}")
        for kernel in kernels.values():
            kernel.close()


def convolutions(folder, lines):
    """ResNet-50's, with bias, ReLU and, where it has one, the residual; cuDNN's have a bias only."""
    lines += ["All of ResNet-50 together, us:", ""]
    head(lines, "images", "ours", "cuDNN without ReLU and residual", "ratio", "worst of one")
    for batch in kernel_cases.BATCHES:
        sums, worst = {"ours": 0.0, "peer": 0.0}, float("inf")
        for conv, count in kernel_cases.resnet50_convs(batch):
            case = kernel_cases.conv(conv)
            tensors = make_arguments(case, 1)
            image = tensors[0].permute(0, 3, 1, 2)
            weight = tensors[1].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            pads = 0 if conv.copied else conv.pads[:2]
            kernel = bound(folder, case.name, tensors)
            peer = lambda: F.conv2d(image, weight, tensors[2], conv.steps, pads, conv.dilations)
            times = compare({"peer": peer, "ours": kernel.launch}, 10)
            for name in sums:
                sums[name] += count * times[name]
            worst = min(worst, times["peer"] / times["ours"])
            kernel.close()
        line(lines, batch, f"{sums['ours']:.0f}", f"{sums['peer']:.0f}", f"{sums['peer'] / sums['ours']:.2f}", f"{worst:.2f}")


def copy_rate():
    source = torch.randint(0, 1 << 30, (1 << 27,), device="cuda", dtype=torch.int32)
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / replay_time(lambda: torch.add(source, 0, out=target), 5) / 1e3


def rows(folder, lines):
    rate = copy_rate()
    lines += [f"A copy: {rate:.0f} GB/s.", ""]
    head(lines, "rows", "ours, us", "GB/s", "of a copy", "eager", *COMPILE_MODES)
    for case in kernel_cases.timed():
        if case.bar != "rows":
            continue
        count, columns, what, _ = case.sizes
        tensors = make_arguments(case, 1)
        if what == "softmax":
            eager, inputs = lambda x: torch.softmax(x, -1), tensors[:1]
        else:
            eager, inputs = lambda x, g, b: F.gelu(F.layer_norm(x, [x.shape[-1]], g, b)), tensors[:3]
        peers = {"eager": eager, **compiled(eager)}
        kernel = bound(folder, case.name, tensors)
        contestants = {name: lambda f=f: f(*inputs) for name, f in peers.items()}
        times = compare({"ours": kernel.launch, **contestants}, 5)
        achieved = count * columns * 4 / times["ours"] / 1e3
        line(lines, f"{what}{' and GELU' if what != 'softmax' else ''} {count} x {columns}", f"{times['ours']:.2f}",
             f"{achieved:.0f}", f"{achieved / rate:.2f}", *[f"{times[name]:.2f}" for name in peers])
        kernel.close()


def chains(folder, lines):
    lines += ["As two kernels of ours:", ""]
    head(lines, "rows x width x columns", "ours, us", "eager", *COMPILE_MODES, "ratio to the best")
    for count, width, columns in CHAINS:
        norm, product = kernel_cases.layernorm(count, width), kernel_cases.gemm(count, columns, width)
        x = make_arguments(norm, 1)
        y = make_arguments(product, 2)
        y[0] = x[-1]
        kernels = [bound(folder, norm.name, x), bound(folder, product.name, y)]

        def eager(a, g, b, w):
            return F.gelu(F.layer_norm(a, [a.shape[-1]], g, b)) @ w

        peers = {"eager": eager, **compiled(eager)}
        contestants = {name: lambda f=f: f(*x[:3], y[1]) for name, f in peers.items()}
        times = compare({"ours": lambda: [kernel.launch() for kernel in kernels], **contestants}, 5)
        best = min(times[name] for name in peers)
        line(lines, f"{count} x {width} x {columns}", f"{times['ours']:.2f}", *[f"{times[name]:.2f}" for name in peers],
             f"{best / times['ours']:.2f}")


def attentions(folder, lines):
    backends = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    lines += ["16,384 tokens (32,768 of one text), heads times width 2,048 or just below:", ""]
    head(lines, "rows, width of a head", "ours, us", "TFLOP/s", *backends, "ratio to the best")
    for case in kernel_cases.timed():
        if case.bar != "attention":
            continue
        batch, heads, count, width, causal = case.sizes
        tensors = make_arguments(case, 1)
        kernel = bound(folder, case.name, tensors)

        def peer(backend):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(*tensors[:3], is_causal=causal)

        kernel.launch()
        expected = peer(backends["cuDNN"]).float()
        error = (tensors[-1].float() - expected).norm() / expected.norm()
        if not error <= ATTENTION_TOLERANCE:
            raise SystemExit(f"{case.name} differs from cuDNN by {error:.1e}, at most {ATTENTION_TOLERANCE:.0e} is right")
        peers = {name: lambda b=b: peer(b) for name, b in backends.items()}
        operations = 4.0 * batch * heads * count * count * width / (2 if causal else 1)
        times = compare({"ours": kernel.launch, **peers}, 3)
        best = min(times[name] for name in peers)
        line(lines, f"{count}, {width}{', causal' if causal else ''}", f"{times['ours']:.1f}",
             f"{operations / times['ours'] / 1e6:.0f}", *[f"{times[name]:.1f}" for name in peers],
             f"{best / times['ours']:.2f}")
        kernel.close()


# name of --tables: the section of the page and what fills it
TABLES = {
    "products": ("## Products", products),
    "long": ("## Products of few tiles and long k", long_products),
    "convolutions": ("## Convolutions", convolutions),
    "rows": ("## Rows", rows),
    "chains": ("## LayerNorm, GELU and a product", chains),
    "attention": ("## Attention", attentions),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tables", default=",".join(TABLES), help="with commas (default %(default)s)")
    parser.add_argument("--write", metavar="FILE")
    options = parser.parse_args()
    wanted = options.tables.split(",")
    if unknown := set(wanted) - set(TABLES):
        parser.error(f"--tables: {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    with torch.no_grad():
        torch.backends.cudnn.benchmark = True
        for name in wanted:
            heading, fill = TABLES[name]
            lines = [f"One {torch.cuda.get_device_name()}, fp16, CUDA graphs, PyTorch {torch.__version__}; written by "
                     f"bench/compare_torch.py --tables {name}, which says how.", ""]
            print(f"\n{heading}\n")
            fill(options.folder, lines)
            if options.write:
                bench_tables.write(options.write, heading, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
