#!/usr/bin/env python3
"""Attention as exporters write it, on an NVIDIA GPU: compiled here, run here or on another machine, as gpu_cases.py.

    attention_models.py pack FOLDER      compile for hopper; each library must hold a kernel of attention
    attention_models.py run FOLDER       three runs a session; compares with float64 (O3_SEED)
    attention_models.py check            both, with a card; skips without

The last line is `attention: P passed, F failed, S skipped`.
"""
import os
import random
import re
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "numeric")]

LOWEST = float(np.finfo(np.float32).min)
MANY_BATCHES = 12
# batch, heads, rows, columns, width of a head, mask, precision; with many batches they are for warpgroups where there are
CASES = [(2, 3, 127, 129, 64, "none", "fp16"), (30, 2, 130, 257, 128, "none", "bf16"), (12, 12, 128, 128, 64, "keys", "fp16"),
         (3, 5, 37, 37, 64, "keys", "bf16"), (2, 2, 300, 300, 128, "causal", "fp16"), (16, 2, 129, 131, 64, "full", "fp16"),
         (2, 2, 1, 513, 64, "keys", "fp16"), (1, 2, 70, 2, 128, "full", "fp16"), (2, 3, 64, 640, 64, "full", "bf16")]
# These have queries, keys and values of one input, by constant weights and biases, as a layer of BERT has them.
JOINED = [(20, 3, 127, 127, 64, "keys", "fp16"), (1, 2, 40, 40, 128, "none", "bf16")]
# Groups of heads share keys and values, which Unsqueeze, Expand and Reshape repeat; what is said of a group's heads.
SHARED = {(4, 6, 130, 130, 64, "keys", "fp16"): 3, (1, 8, 1, 1500, 128, "none", "fp16"): 4, (2, 4, 40, 70, 32, "keys", "bf16"): 2, (1, 4, 33, 33, 64, "full", "fp16"): 2}
# The Attention op: batch, heads, heads of K and V, rows, columns, width, mask, precision
OPS = [(2, 4, 2, 257, 257, 64, "up_to_diagonal", "fp16"), (1, 6, 2, 130, 190, 128, "shown", "bf16"),
       (3, 4, 1, 70, 300, 64, "none", "fp16"), (2, 2, 2, 300, 300, 128, "up_to_diagonal", "fp16"),
       (2, 8, 2, 1, 513, 64, "shown", "fp16"), (9, 16, 4, 330, 330, 64, "up_to_diagonal", "fp16"),
       (2, 4, 2, 130, 190, 80, "shown", "fp16"), (1, 3, 3, 200, 200, 256, "up_to_diagonal", "fp16"),
       (1, 2, 2, 70, 300, 20, "none", "fp16"), (1, 2, 1, 33, 3000, 96, "none", "bf16"), (1, 2, 2, 65, 65, 7, "up_to_diagonal", "fp16")]
TOLERANCES = {"fp16": 3e-3, "bf16": 2e-2}
LEVEL = 3


def all_cases():
    """Cases, and whether they are joined."""
    return [(case, False) for case in [*CASES, *SHARED]] + [(case, True) for case in JOINED] + [(case, False) for case in OPS]


def name_of(case, joined):
    kind = "op" if case in OPS else "shared" if case in SHARED else "attention"
    return f"{kind}_{'joined_' if joined else ''}" + "_".join(map(str, case))


def half_of(precision):
    import ml_dtypes

    return np.float16 if precision == "fp16" else ml_dtypes.bfloat16


def weights_of(case):
    """Weights and biases that make the joined case's queries, keys and values, halves as float32; always the same."""
    rng, size = np.random.default_rng(1), case[1] * case[4]
    halves = lambda array: array.astype(half_of(case[-1])).astype(np.float32)
    return [(halves(rng.standard_normal((size, size)) / size**0.5), halves(rng.standard_normal(size))) for _ in range(3)]


def mask_shape(batch, heads, rows, columns, _width, mask, _precision):
    return {"keys": (batch, 1, 1, columns), "causal": (rows, columns), "full": (batch, heads, rows, columns)}[mask]


def model_of(case, joined):
    """Inputs [batch, rows or columns, heads * width]; heads come to the front by Reshape and Transpose, as in BERT."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    batch, heads, rows, columns, width, mask, _ = case
    nodes, inputs = [], []

    def add(op, sources, result, **attributes):
        nodes.append(helper.make_node(op, sources, [result], name=f"{op}_{len(nodes)}", **attributes))
        return result

    projections = {}
    for i, (name, count) in enumerate((("q", rows), ("k", columns), ("v", columns))):
        if joined:
            projections[f"{name}_weights"], projections[f"{name}_bias"] = weights_of(case)[i]
            add("Add", [add("MatMul", ["x", f"{name}_weights"], f"{name}_product"), f"{name}_bias"], name)
        own = heads // SHARED.get(case, 1) if i else heads
        if not joined or not i:
            inputs.append(helper.make_tensor_value_info("x" if joined else name, TensorProto.FLOAT, [batch, count, own * width]))
        projections[f"{name}_split"] = np.array([0, 0, own, width])
        split = add("Reshape", [name, f"{name}_split"], f"{name}_heads")
        if own == heads:
            add("Transpose", [split], f"{name}_front", perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])
            continue
        projections[f"{name}_repeat"] = np.array([batch, own, heads // own, count, width])
        projections[f"{name}_all"] = np.array([batch, heads, count, width])
        one = add("Unsqueeze", [add("Transpose", [split], f"{name}_own", perm=[0, 2, 1, 3]), "two"], f"{name}_one")
        repeated = add("Reshape", [add("Expand", [one, f"{name}_repeat"], f"{name}_copies"), f"{name}_all"],
                       f"{name}_shared" if name == "k" else "v_front")
        if name == "k":
            add("Transpose", [repeated], "k_front", perm=[0, 1, 3, 2])
    scores = add("Div", [add("MatMul", ["q_front", "k_front"], "products"), "root"], "scaled")
    if mask != "none":
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, mask_shape(*case)))
        scores = add("Add", [scores, "mask"], "masked")
    mixed = add("MatMul", [add("Softmax", [scores], "weights", axis=-1), "v_front"], "mixed")
    add("Reshape", [add("Transpose", [mixed], "back", perm=[0, 2, 1, 3]), "join"], "y")
    constants = {"join": np.array([0, 0, heads * width]), "root": np.float32(width**0.5), "two": np.array([2]), **projections}
    graph = helper.make_graph(nodes, "attention", inputs,
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, rows, heads * width])],
                              [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def op_model(case):
    """[batch, heads, rows or columns, width]; the first dimension of a mask is that of rows."""
    from onnx import TensorProto, helper

    batch, heads, kv_heads, rows, columns, width, mask, _ = case
    shapes = {"q": [batch, heads, rows, width], "k": [batch, kv_heads, columns, width], "v": [batch, kv_heads, columns, width]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    if mask == "shown":
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, [rows, columns]))
    node = helper.make_node("Attention", [i.name for i in inputs], ["y"], name="attention",
                            is_causal=int(mask == "up_to_diagonal"))
    graph = helper.make_graph([node], "attention", inputs,
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, heads, rows, width])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def op_inputs(case, rng):
    import ml_dtypes

    batch, heads, kv_heads, rows, columns, width, mask, precision = case
    half = np.float16 if precision == "fp16" else ml_dtypes.bfloat16
    arrays = [rng.standard_normal((batch, count, size, width)).astype(half).astype(np.float32)
              for count, size in ((heads, rows), (kv_heads, columns), (kv_heads, columns))]
    if mask == "shown":  # each row sees something
        arrays.append(rng.random((rows, columns)) < 0.7)
        arrays[-1][:, 0] = True
    return arrays


def op_reference(case, q, k, v, mask=True):
    heads, kv_heads, rows, columns, width = case[1:6]
    k, v = (np.repeat(x.astype(np.float64), heads // kv_heads, 1) for x in (k, v))
    if case[6] == "up_to_diagonal":
        mask = np.tri(rows, columns, dtype=bool)
    scores = np.where(mask, q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / width**0.5, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def inputs_of(case, joined, rng):
    """Halves as float32. Of the keys' masks one batch is masked as a whole: its probabilities are equal."""
    batch, heads, rows, columns, width, mask, precision = case
    own = heads // SHARED.get(case, 1)
    arrays = [rng.standard_normal((batch, count, number * width)).astype(half_of(precision)).astype(np.float32)
              for count, number in ((rows, heads), (columns, own), (columns, own))[:1 if joined else 3]]
    if mask == "keys":
        arrays.append(np.where(rng.random(mask_shape(*case)) < 0.3, np.float32(LOWEST), np.float32(0)))
        arrays[-1][0] = LOWEST
    elif mask == "causal":
        arrays.append(np.triu(np.full((rows, columns), -np.inf, np.float32), 1))
    elif mask == "full":
        arrays.append(rng.standard_normal(mask_shape(*case)).astype(np.float32))
    return arrays


def reference(case, joined, *arrays):
    batch, heads, _, _, width, *_ = case
    x = arrays[0].astype(np.float64)
    sources = [x @ w + b for w, b in weights_of(case)] if joined else arrays[:3]
    q, k, v, mask = (*sources, *(arrays[len(sources):] if not joined else arrays[1:]), 0.0)[:4]
    q, k, v = (np.repeat(x, heads // x.shape[1], 1) for x in
               (x.astype(np.float64).reshape(batch, x.shape[1], -1, width).transpose(0, 2, 1, 3) for x in (q, k, v)))
    scores = q @ k.transpose(0, 1, 3, 2) / width**0.5
    scores = (scores.astype(np.float32) + mask).astype(np.float64)  # beside the lowest float a score is nothing
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(batch, -1, heads * width)


def options(case, target):
    return "--target", target, "--precision", case[-1]


def save(case, joined, path):
    import onnx

    onnx.save(op_model(case) if case in OPS else model_of(case, joined), path)


def pack(folder, target):
    import o3_model

    os.makedirs(folder, exist_ok=True)
    for case, joined in all_cases():
        path = os.path.join(folder, name_of(case, joined))
        save(case, joined, f"{path}.onnx")
        o3_model.compile_model(f"{path}.onnx", f"{path}.so", LEVEL, options(case, target))
        os.remove(f"{path}.onnx")
        on_warpgroups = target == "hopper" and case in CASES and case[0] >= MANY_BATCHES
        with open(f"{path}.so", "rb") as file:
            if not re.search(rb"16_attention_\w+__sm90a" if on_warpgroups else rb"16_attention_", file.read()):
                raise SystemExit(f"{path}: no kernel of attention{' on warpgroups' * on_warpgroups}")


def error_of(case, joined, library, seed):
    """The largest of three runs in a session."""
    import o3_model

    rng = np.random.default_rng(seed)
    arrays = op_inputs(case, rng) if case in OPS else inputs_of(case, joined, rng)
    expected = op_reference(case, *arrays) if case in OPS else reference(case, joined, *arrays)
    session, error = o3_model.Model(library).session(), 0.0
    for _ in range(3):
        got = session.run(arrays)[0].astype(np.float64)
        found = np.linalg.norm(got - expected) / np.linalg.norm(expected)
        error = max(error, found if np.isfinite(found) else float("inf"))
    return error


def run(folder):
    seed = int(os.environ.get("O3_SEED", random.randrange(1 << 30)))
    print(f"seed {seed}")
    passed = failed = 0
    for case, joined in all_cases():
        error = error_of(case, joined, os.path.join(folder, name_of(case, joined) + ".so"), seed)
        good = error <= TOLERANCES[case[-1]]
        passed, failed = passed + good, failed + (not good)
        print(f"{'ok  ' if good else 'FAIL'} {name_of(case, joined):50} {error:.2e} (at most {TOLERANCES[case[-1]]:.0e})", flush=True)
    print(f"attention: {passed} passed, {failed} failed, 0 skipped")
    return failed > 0


def main():
    what, *folder = sys.argv[1:]
    if what == "pack":
        return pack(*folder, "hopper")
    if what == "run":
        return run(*folder)
    import gpu_cases

    if not gpu_cases.has_card():
        print(f"SKIP: no card here\nattention: 0 passed, 0 failed, {len(all_cases())} skipped")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        pack(scratch, "gpu")
        return run(scratch)


if __name__ == "__main__":
    sys.exit(main())
