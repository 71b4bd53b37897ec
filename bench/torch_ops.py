#!/usr/bin/env python3
"""torch_ops.py [--write FILE] [--only TEXT] [--modes eager,compile]: ops that move, pool and reduce, beside PyTorch, on a card.

Each is a model of one op, or of a few that become one kernel, in fp16 (casts: and fp32), compiled by o3c for this machine's
card, or from --folder FOLDER, where --make FOLDER --target TARGET has put it on a machine without one. Inputs and
results lie on the card; contestants are CUDA graphs that are replayed, ours by its session, and take turns in both orders.
The bytes of a second are those of the inputs and results, read and written once, beside those of a copy. Results are
compared with PyTorch's of the same inputs in float32.
"""
import argparse
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "test", folder) for folder in ("numeric", "models")]
import numpy as np  # noqa: E402
import onnx  # noqa: E402

import bench_tables  # noqa: E402
import o3_model  # noqa: E402

HEADING = "## Ops that move, pool and reduce"
TYPES = {"f16": "float16", "f32": "float", "i64": "int64"}
BYTES = {"f16": 2, "f32": 4, "i64": 8}


class Case:
    """|text|: nodes in ONNX's textual form, of inputs a, b ... and the result y; |shapes|: "f16 64x64" for each input;
    |peer|: the same of torch tensors, given torch and torch.nn.functional; |constants|: of initializers; |limit|: of
    indices."""

    def __init__(self, title, text, shapes, result, peer, constants=None, limit=0, used=None):
        self.title, self.text, self.peer, self.constants, self.limit = title, text, peer, constants or {}, limit
        self.shapes = [self.parse(shape) for shape in shapes]
        self.result, self.used = self.parse(result), used

    @staticmethod
    def parse(shape):
        kind, sizes = shape.split()
        return kind, [int(size) for size in sizes.split("x")]

    def name(self):
        return "".join(c if c.isalnum() else "_" for c in self.title)

    def model(self):
        inputs = ", ".join(self.declare("abcd"[i], *shape) for i, shape in enumerate(self.shapes))
        constants = ", ".join(f"{self.declare(name, *self.parse(shape))} = {{{values}}}"
                              for name, (shape, values) in self.constants.items())
        return onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 18]> g ({inputs}) => ({self.declare("y", *self.result)}) '
            f'{f"<{constants}>" if constants else ""} {{ {self.text} }}')

    @staticmethod
    def declare(name, kind, sizes):
        return f"{TYPES[kind]}[{','.join(map(str, sizes))}] {name}"

    def bytes(self):
        """Read and written, once each."""
        counted = [BYTES[kind] * int(np.prod(sizes)) for kind, sizes in [*self.shapes, self.result]]
        return self.used if self.used else sum(counted)


IMAGE = "64x256x56x56"
CASES = [
    Case("add", "y = Add (a, b)", [f"f16 {IMAGE}"] * 2, f"f16 {IMAGE}", lambda t, f, a, b: a + b),
    Case("relu", "y = Relu (a)", [f"f16 {IMAGE}"], f"f16 {IMAGE}", lambda t, f, a: f.relu(a)),
    Case("add of a channel's bias, relu", "s = Add (a, b) y = Relu (s)", [f"f16 {IMAGE}", "f16 256x1x1"], f"f16 {IMAGE}",
         lambda t, f, a, b: f.relu(a + b)),
    Case("product with a last dimension's factor", "y = Mul (a, b)", ["f16 50176x1024", "f16 1024"], "f16 50176x1024",
         lambda t, f, a, b: a * b),
    Case("cast f32 to f16", "y = Cast <to=10> (a)", [f"f32 {IMAGE}"], f"f16 {IMAGE}", lambda t, f, a: a.half()),
    Case("cast f16 to f32", "y = Cast <to=1> (a)", [f"f16 {IMAGE}"], f"f32 {IMAGE}", lambda t, f, a: a.float()),
    Case("SiLU", "s = Sigmoid (a) y = Mul (a, s)", [f"f16 {IMAGE}"], f"f16 {IMAGE}", lambda t, f, a: f.silu(a)),
    Case("average pool 3x3 /2", "y = AveragePool <kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]> (a)",
         ["f16 64x64x112x112"], "f16 64x64x56x56", lambda t, f, a: f.avg_pool2d(a, 3, 2, 1, count_include_pad=False)),
    Case("max pool 3x3 /2", "y = MaxPool <kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]> (a)",
         ["f16 64x64x112x112"], "f16 64x64x56x56", lambda t, f, a: f.max_pool2d(a, 3, 2, 1)),
    Case("max pool 2x2 /2", "y = MaxPool <kernel_shape=[2,2], strides=[2,2]> (a)",
         ["f16 64x64x112x112"], "f16 64x64x56x56", lambda t, f, a: f.max_pool2d(a, 2, 2)),
    Case("global average pool 32x32", "y = GlobalAveragePool (a)", ["f16 64x512x32x32"], "f16 64x512x1x1",
         lambda t, f, a: f.adaptive_avg_pool2d(a, 1)),
    Case("global average pool 7x7", "y = GlobalAveragePool (a)", ["f16 256x2048x7x7"], "f16 256x2048x1x1",
         lambda t, f, a: f.adaptive_avg_pool2d(a, 1)),
    Case("concat of channels", "y = Concat <axis=1> (a, b)", ["f16 64x128x56x56"] * 2, f"f16 {IMAGE}",
         lambda t, f, a, b: t.cat([a, b], 1)),
    Case("concat of columns", "y = Concat <axis=1> (a, b)", ["f16 50176x512"] * 2, "f16 50176x1024",
         lambda t, f, a, b: t.cat([a, b], 1)),
    Case("slice of channels", "y = Slice (a, s, e, x)", [f"f16 {IMAGE}"], "f16 64x128x56x56",
         lambda t, f, a: a[:, 64:192].contiguous(),
         {"s": ("i64 1", "64"), "e": ("i64 1", "192"), "x": ("i64 1", "1")}, used=2 * 2 * 64 * 128 * 56 * 56),
    Case("slice of an image's inside", "y = Slice (a, s, e, x)", [f"f16 {IMAGE}"], "f16 64x256x54x54",
         lambda t, f, a: a[:, :, 1:55, 1:55].contiguous(),
         {"s": ("i64 2", "1,1"), "e": ("i64 2", "55,55"), "x": ("i64 2", "2,3")}),
    Case("pad of an image", "y = Pad (a, p)", [f"f16 {IMAGE}"], "f16 64x256x58x58", lambda t, f, a: f.pad(a, [1] * 4),
         {"p": ("i64 8", "0,0,1,1,0,0,1,1")}),
    Case("resize nearest x2", 'y = Resize <mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"> (a, , s)',
         ["f16 64x64x56x56"], "f16 64x64x112x112", lambda t, f, a: f.interpolate(a, scale_factor=2),
         {"s": ("f32 4", "1,1,2,2")}),
    Case("resize linear x2", 'y = Resize <mode="linear", coordinate_transformation_mode="half_pixel"> (a, , s)',
         ["f16 64x64x56x56"], "f16 64x64x112x112", lambda t, f, a: f.interpolate(a, scale_factor=2, mode="bilinear"),
         {"s": ("f32 4", "1,1,2,2")}),
    Case("transpose 8192 x 4096", "y = Transpose <perm=[1,0]> (a)", ["f16 8192x4096"], "f16 4096x8192",
         lambda t, f, a: a.t().contiguous()),
    Case("transpose to channels last", "y = Transpose <perm=[0,2,3,1]> (a)", [f"f16 {IMAGE}"], "f16 64x56x56x256",
         lambda t, f, a: a.permute(0, 2, 3, 1).contiguous()),
    Case("transpose from channels last", "y = Transpose <perm=[0,3,1,2]> (a)", ["f16 64x56x56x256"], f"f16 {IMAGE}",
         lambda t, f, a: a.permute(0, 3, 1, 2).contiguous()),
    Case("transpose of heads", "y = Transpose <perm=[0,2,1,3]> (a)", ["f16 64x512x16x64"], "f16 64x16x512x64",
         lambda t, f, a: a.transpose(1, 2).contiguous()),
    Case("gather of rows", "y = Gather <axis=0> (a, b)", ["f16 30000x1024", "i64 32768"], "f16 32768x1024",
         lambda t, f, a, b: a[b], limit=30000, used=2 * 2 * 32768 * 1024),
    Case("sum over the first dimension", "y = ReduceSum <keepdims=0> (a, x)", ["f16 8192x4096"], "f16 4096",
         lambda t, f, a: a.sum(0), {"x": ("i64 1", "0")}),
    Case("mean over the middle dimension", "y = ReduceMean <keepdims=0> (a, x)", ["f16 64x1024x768"], "f16 64x768",
         lambda t, f, a: a.mean(1), {"x": ("i64 1", "1")}),
    Case("mean of channels", "y = ReduceMean <keepdims=1> (a, x)", [f"f16 {IMAGE}"], "f16 64x1x56x56",
         lambda t, f, a: a.mean(1, keepdim=True), {"x": ("i64 1", "1")}),
    Case("sum of 16 long rows", "y = ReduceSum <keepdims=0> (a, x)", ["f16 16x4194304"], "f16 16",
         lambda t, f, a: a.sum(1), {"x": ("i64 1", "1")}),
    Case("max of all", "z = ReduceMax <keepdims=0> (a, x) y = Reshape (z, n)", ["f16 16x4194304"], "f16 1",
         lambda t, f, a: a.amax().reshape(1), {"x": ("i64 2", "0,1"), "n": ("i64 1", "1")}),
    Case("softmax over channels", "y = Softmax <axis=1> (a)", ["f16 64x32x112x112"], "f16 64x32x112x112",
         lambda t, f, a: a.softmax(1)),
    Case("softmax over the last dimension", "y = Softmax <axis=-1> (a)", ["f16 50176x1000"], "f16 50176x1000",
         lambda t, f, a: a.softmax(-1)),
]


def compile_case(case, folder, target):
    """The library, named for the case, since a path is loaded once."""
    model = os.path.join(folder, f"{case.name()}.onnx")
    onnx.save(case.model(), model)
    library = os.path.join(folder, f"{case.name()}.so")
    o3_model.compile_model(model, library, 3, ("--target", target))
    os.unlink(model)
    return library


def draw(torch, kind, sizes, limit):
    if kind == "i64":
        return torch.randint(0, limit, sizes, device="cuda")
    return torch.randn(sizes, device="cuda", dtype=torch.float16 if kind == "f16" else torch.float32)


def error_of(torch, case, inputs, got):
    """The largest difference from PyTorch's result in float32, over that result's largest value."""
    wide = [x.float() if x.is_floating_point() else x for x in inputs]
    expected = case.peer(torch, torch.nn.functional, *wide).float()
    worst = (got.float().reshape(expected.shape) - expected).abs().max() / expected.abs().max()
    return worst.item() if torch.isfinite(got).all() else float("nan")


def row(torch_networks, case, library, modes, rate):
    torch = torch_networks.torch
    functional = torch.nn.functional
    inputs = [draw(torch, kind, sizes, case.limit) for kind, sizes in case.shapes]
    session = torch_networks.CardSession(library, dict(zip("abcd", inputs)))
    session.run()
    torch.cuda.synchronize()
    error = error_of(torch, case, inputs, session.results[0])
    contestants = {"ours": session.run_inside}
    for mode in modes:
        torch._dynamo.reset()
        call, how = lambda *x: case.peer(torch, functional, *x), torch_networks.MODES[mode]
        made = torch.compile(call, mode=how, dynamic=False) if how else call
        contestants[mode] = torch_networks.graph_of(lambda made=made: made(*inputs))
    times = torch_networks.compare(contestants, 0.02)
    session.close()
    achieved = case.bytes() / times["ours"] / 1e6
    best = min((times[mode] for mode in modes), default=float("nan"))
    peers = [f"{times[mode] * 1e3:.1f}" if mode in times else "-" for mode in torch_networks.MODES]
    return [case.title, f"{times['ours'] * 1e3:.1f}", f"{achieved:.0f}", f"{achieved / rate:.2f}", *peers,
            f"{best / times['ours']:.2f}", f"{error:.1e}"]


def copy_rate(torch_networks):
    """GB/s, read and written, of a copy of 0.5 GB."""
    torch = torch_networks.torch
    source = torch.randint(0, 1 << 30, (1 << 27,), device="cuda", dtype=torch.int32)
    target = torch.empty_like(source)
    return 8 * source.numel() / torch_networks.milliseconds(torch_networks.graph_of(lambda: torch.add(source, 0, out=target))) / 1e6


def measure(options):
    import torch_networks

    torch, lines = torch_networks.torch, []
    modes = [mode for mode in options.modes.split(",") if mode]
    if unknown := set(modes) - set(torch_networks.MODES):
        raise SystemExit(f"torch_ops.py: --modes: {', '.join(sorted(unknown))}; there are {', '.join(torch_networks.MODES)}")
    with tempfile.TemporaryDirectory(prefix="o3-bench-") as made, torch.no_grad():
        rate = copy_rate(torch_networks)
        lines += [f"fp16, us, one {torch.cuda.get_device_name()}, PyTorch {torch.__version__}; a copy: {rate:.0f} GB/s; written by "
                  "bench/torch_ops.py, which says how.", ""]
        torch_networks.head(lines, "op", "ours", "GB/s", "of a copy", *torch_networks.MODES, "best : ours", "error")
        for case in CASES:
            if options.only not in case.title:
                continue
            library = os.path.join(options.folder, f"{case.name()}.so") if options.folder else compile_case(case, made, "gpu")
            torch_networks.line(lines, *row(torch_networks, case, library, modes, rate))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="", help="measure those whose title has the text")
    parser.add_argument("--modes", default="eager,compile", help="of PyTorch, with commas (default %(default)s)")
    parser.add_argument("--folder", help="of libraries that are compiled already")
    parser.add_argument("--make", metavar="FOLDER", help="compile into it, measure nothing")
    parser.add_argument("--target", default="hopper", help="of --make (default %(default)s)")
    options = parser.parse_args()
    if options.make:
        os.makedirs(options.make, exist_ok=True)
        for case in CASES:
            if options.only in case.title:
                compile_case(case, options.make, options.target)
        return 0
    lines = measure(options)
    if options.write:
        bench_tables.write(options.write, HEADING, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
