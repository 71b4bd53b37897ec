#!/usr/bin/env python3
"""A small network that has a kernel of every family that the card has, on an NVIDIA GPU: what sanitize.sh runs.

    family_network.py pack FOLDER [TARGET]   compile it and its reference (ONNX Runtime) into FOLDER; for hopper, which is
                                             what is compiled for without TARGET, every family of FAMILIES must be there
    family_network.py run FOLDER             three runs of a session, compared with the reference
    family_network.py cards FOLDER           two sessions on each card of this machine, all at work at once
    family_network.py check                  pack, run and cards, with a card; skips without

The last line is `families: P passed, F failed`, or `cards: ...`.
"""
import concurrent.futures
import os
import re
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "numeric")]

# What kernels' names have: attention on warpgroups and on warps.
FAMILIES = (rb"_gemm_", rb"_conv_", rb"_depthwise_", rb"_rows_", rb"_pack_", rb"_maxpool_", rb"_attention_\w+__sm90a",
            rb"_attention_\w+__sm80", rb"_gemv_")
BATCH, HEADS, WIDTH, COPIES = 2, 2, 64, 9
LEVEL = 3
CARD_RUNS = 50
TOLERANCE = 1e-2  # of the error's norm: fp16 beside fp32


def model(rng):
    """Convolutions, one of them depthwise, a maximum, attention over positions of many copies, which fill a card, and over
    the copies' means, which do not, products and a softmax."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants, model_width = [], {}, HEADS * WIDTH

    def constant(name, *shape, values=None):
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else (shape or [1])[0]
        drawn = (rng.standard_normal(shape) / fan_in**0.5).astype(np.float32)
        constants[name] = drawn if values is None else np.array(values, np.int64)
        return name

    def add(op, sources, **attributes):
        nodes.append(helper.make_node(op, sources, [f"v{len(nodes)}"], name=f"{op}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    x = add("Relu", [add("Conv", ["x", constant("c0", 64, 8, 3, 3), constant("d0", 64)], pads=[1] * 4)])
    x = add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = add("Relu", [add("Conv", [x, constant("c1", model_width, 64, 3, 3), constant("d1", model_width)], strides=[2, 2])])
    x = add("Relu", [add("Conv", [x, constant("c2", model_width, 1, 3, 3)], pads=[1] * 4, group=model_width)])
    x = add("Reshape", [x, constant("flat", values=[0, model_width, -1])])
    x = add("Transpose", [x], perm=[0, 2, 1])
    constants["scale"] = np.array(WIDTH**-0.5, np.float32)

    def attention(x, name):
        parts = []
        for i, perm in enumerate(([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])):
            product = add("MatMul", [x, constant(f"{name}w{i}", model_width, model_width)])
            part = add("Reshape", [add("Add", [product, constant(f"{name}b{i}", model_width)]),
                                   constant(f"{name}h{i}", values=[0, -1, HEADS, WIDTH])])
            parts.append(add("Transpose", [part], perm=perm))
        weights = add("Softmax", [add("Mul", [add("MatMul", parts[:2]), "scale"])], axis=-1)
        x = add("Transpose", [add("MatMul", [weights, parts[2]])], perm=[0, 2, 1, 3])
        return add("Reshape", [x, constant(f"{name}join", values=[0, -1, model_width])])

    x = add("LayerNormalization", [x, constant("g", model_width), constant("h", model_width)])
    x = attention(add("Tile", [x, constant("copies", values=[COPIES, 1, 1])]), "many")
    x = add("ReduceMean", [x], axes=[1], keepdims=0)
    x = attention(add("Reshape", [x, constant("row", values=[1, COPIES * BATCH, model_width])]), "few")
    x = add("Reshape", [x, constant("column", values=[COPIES, BATCH, model_width])])
    x = add("ReduceMean", [x], axes=[0], keepdims=0)
    x = add("Gemm", [x, constant("e", 1000, model_width), constant("f", 1000)], transB=1)
    x = add("Softmax", [add("CumSum", [x, constant("axis", values=1)])], axis=-1)
    graph = helper.make_graph(nodes, "families", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [BATCH, 8, 31, 29])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [BATCH, 1000])],
                              [numpy_helper.from_array(value, key) for key, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def options(target):
    return "--target", target, "--precision", "fp16"


def pack(folder, target="hopper"):
    import o3_model
    import onnx
    import onnxruntime

    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(int(os.environ.get("O3_SEED", 1)))
    path = os.path.join(folder, "families")
    onnx.save(model(rng), f"{path}.onnx")
    x = rng.standard_normal((BATCH, 8, 31, 29)).astype(np.float32)
    y = onnxruntime.InferenceSession(f"{path}.onnx", providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    np.savez(f"{path}.npz", x=x, y=y)
    o3_model.compile_model(f"{path}.onnx", f"{path}.so", LEVEL, options(target))
    with open(f"{path}.so", "rb") as file:
        library = file.read()
    missing = [name.decode() for name in FAMILIES if target == "hopper" and not re.search(name, library)]
    if missing:
        raise SystemExit(f"families: no kernel of {', '.join(missing)}")


def packed(folder):
    """The model, its input, and a function that gives a result's error."""
    import o3_model

    with np.load(os.path.join(folder, "families.npz")) as arrays:
        x, expected = arrays["x"], arrays["y"].astype(np.float64)
    model = o3_model.Model(os.path.join(folder, "families.so"))
    return model, x, lambda result: float(np.linalg.norm(result - expected) / np.linalg.norm(expected))


def errors(folder):
    """Of three runs: as written, recorded, replayed."""
    model, x, error = packed(folder)
    session = model.session()
    return [error(session.run([x])[0]) for _ in range(3)]


def run(folder):
    passed = 0
    for turn, error in zip(("as written", "recorded", "replayed"), errors(folder)):
        good = error <= TOLERANCE
        passed += good
        print(f"{'ok  ' if good else 'FAIL'} {turn:12} {error:.2e} (at most {TOLERANCE:.0e})", flush=True)
    print(f"families: {passed} passed, {3 - passed} failed")
    return int(passed < 3)


def sessions_of_all_cards(model):
    import o3_model

    sessions = []
    while True:
        try:
            sessions.append([model.session(device=len(sessions)) for _ in range(2)])
        except o3_model.O3Error as error:
            if not sessions or "there is no GPU" not in str(error):
                raise
            return sessions


def cards(folder):
    model, x, error = packed(folder)
    sessions = sessions_of_all_cards(model)
    flat = [session for both in sessions for session in both]
    with concurrent.futures.ThreadPoolExecutor(len(flat)) as pool:
        results = list(pool.map(lambda session: [session.run([x])[0] for _ in range(CARD_RUNS)], flat))
    passed = 0
    for i, runs in enumerate(results):
        worst = max(map(error, runs))
        good = worst <= TOLERANCE and all(np.array_equal(runs[0], run) for run in runs)
        passed += good
        print(f"{'ok  ' if good else 'FAIL'} card {i // 2}, session {i % 2}: {worst:.2e} (at most {TOLERANCE:.0e})", flush=True)
    print(f"cards: {passed} passed, {len(flat) - passed} failed")
    return int(passed < len(flat))


def check():
    import gpu_cases

    if not gpu_cases.has_card():
        print("SKIP: no card here\nfamilies: 0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        pack(folder, "gpu")
        return run(folder) | cards(folder)


if __name__ == "__main__":
    sys.exit({"pack": pack, "run": run, "cards": cards, "check": check}[sys.argv[1]](*sys.argv[2:]))
