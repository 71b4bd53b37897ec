"""What a compiled model does with wrong inputs: it says which input, what came and what was expected.

A row: a label, ONNX text of the graph, the arrays that are given, and a pattern that the message matches.
Each runs in a process of its own: a model that crashes is a failure of its row.
"""

import os
import re

import numpy as np
import onnx

import apart
import o3_model

LEVELS = (0, 1)


def f32(*shape):
    return np.ones(shape, np.float32)


ADD = "g (float[N,4] a, float[N,4] b) => (float[N,4] y) { y = Add(a, b) }"
LOOSE = "g (float[M,K] a, float[L,N] b) => (float[M,N] y) { y = MatMul(a, b) }"
BROADCAST = "g (float[A] a, float[B] b) => (float[C] y) { y = Add(a, b) }"
CONV = """g (float[N,3,H,W] image) => (float[N,2,P,Q] y) <float[2,3,3,3] w = {""" + ",".join(["0.5"] * 54) + \
    """}> { y = Conv(image, w) }"""
GATHER = "g (float[5,N] table, int64[M] rows) => (float[M,N] y) { y = Gather(table, rows) }"
RESHAPE = "g (float[N,4] a) => (float[M,3] y) <int64[2] s = {-1, 3}> { y = Reshape(a, s) }"
CONCAT = "g (float[N,A] a, float[M,B] b) => (float[N,C] y) { y = Concat <axis=1> (a, b) }"
CHOICE = """g (float[2,3] a, int64 which) => (float[2,3] y) <int64 three = {3}, float[4] w = {1, 2, 3, 4}>
{ c = Equal(which, three) y = If (c) <then_branch = t () => (float[2,3] p) { p = Neg(a) },
                                      else_branch = e () => (float[2,4] q) { q = Add(a, w) }> }"""
FOUND = """g (float[N] a, float[1,M] b) => (float[1,K] y)
{ z = NonZero(a) c = Cast <to=1> (z) y = Add(c, b) }"""
OPTIONS = {CHOICE: ("--value", "which=3")}

ROWS = [
    ("right sizes run", ADD, [f32(3, 4), f32(3, 4)], None),
    ("a fixed size is wrong", ADD, [f32(3, 5), f32(3, 4)], r"'a'.*5.*4"),
    ("one symbol, two sizes", ADD, [f32(3, 4), f32(2, 4)], r"'b'.*N"),
    ("wrong type", ADD, [f32(3, 4).astype(np.float64), f32(3, 4)], r"'a'.*float64.*float32"),
    ("wrong rank", ADD, [f32(3, 4), f32(4)], r"'b'.*"),
    ("too few inputs", ADD, [f32(3, 4)], r"1.*2"),
    ("too many inputs", ADD, [f32(3, 4), f32(3, 4), f32(3, 4)], r"3.*2"),
    ("contraction agrees", LOOSE, [f32(3, 4), f32(4, 2)], None),
    ("contraction differs", LOOSE, [f32(3, 4), f32(5, 2)], r"MatMul|[KL]"),
    ("contraction of one and five", LOOSE, [f32(3, 1), f32(5, 2)], r"MatMul|[KL]"),
    ("shapes do not broadcast", BROADCAST, [f32(3), f32(4)], r"Add|[AB]"),
    ("image smaller than the kernel", CONV, [f32(1, 3, 2, 8)], r"Conv|image"),
    ("wrong channels", CONV, [f32(1, 4, 8, 8)], r"'image'.*4.*3"),
    ("no images at all", CONV, [f32(0, 3, 8, 8)], None),
    ("index in range", GATHER, [f32(5, 2), np.array([0, 4, -5])], None),
    ("index too large", GATHER, [f32(5, 2), np.array([0, 5])], r"Gather"),
    ("index too small", GATHER, [f32(5, 2), np.array([-6])], r"Gather"),
    ("sizes that do not divide", RESHAPE, [f32(4, 4)], r"Reshape"),
    ("sizes that divide", RESHAPE, [f32(3, 4)], None),
    ("the value that was fixed", CHOICE, [f32(2, 3), np.array(3)], None),
    ("another value than was fixed", CHOICE, [f32(2, 3), np.array(2)], r"'which'.*3"),
    ("as many as were found", FOUND, [f32(4), f32(1, 4)], None),
    ("more than were found", FOUND, [f32(3), f32(1, 4)], r"\[a size of node '.*' \(NonZero\)\] must equal M"),
    ("concat of other sizes", CONCAT, [f32(3, 4), f32(2, 4)], r"Concat|[NM]"),
]


def model_of(text):
    graph = onnx.parser.parse_graph(text)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)


def outcome(path, level, options, arrays, pattern, library):
    """None, or what is wrong."""
    try:
        o3_model.compile_model(path, library, level, options)
    except o3_model.O3Error as error:
        return f"o3c: {error.code}: {error}"
    session = o3_model.Model(library).session(threads=1)
    try:
        session.run(arrays)
    except o3_model.O3Error as error:
        if pattern is None:
            return f"an error came: {error}"
        return None if re.search(pattern, str(error)) else f"the error '{error}' does not match /{pattern}/"
    return f"no error came, one like /{pattern}/ was expected" if pattern is not None else None


def run(scratch, labels):
    """{(label, level): None or what is wrong} for the rows whose labels hold one of |labels|."""
    results = {}
    for number, (label, text, arrays, pattern) in enumerate(ROWS):
        label = f"guard: {label}"
        if labels and not any(part in label for part in labels):
            continue
        path = os.path.join(scratch, f"guard{number}.onnx")
        onnx.save(model_of(text), path)
        for level in LEVELS:
            library = os.path.join(scratch, f"guard{number}-O{level}.so")
            what, how = apart.call(outcome, path, level, OPTIONS.get(text, ()), arrays, pattern, library)
            results[label, level] = how or what
    return results
