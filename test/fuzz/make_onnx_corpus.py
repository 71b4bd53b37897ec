#!/usr/bin/env python3
"""Writes the seeds of fuzz_onnx_import: make_onnx_corpus.py FOLDER (needs onnx 1.17 or later and numpy).

Each seed is a tiny valid model that uses one part of the format; the unit tests import them all.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh


def info(name, dtype=T.FLOAT, shape=("N", 4)):
    return h.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, ir=8, functions=(), imports=(), sparse=()):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(initializers))
    graph.sparse_initializer.extend(sparse)
    opsets = [h.make_opsetid("", opset)] + [h.make_opsetid(*i) for i in imports]
    return h.make_model(graph, opset_imports=opsets, ir_version=ir, functions=list(functions))


def raw_weights():
    w = nh.from_array(np.arange(16, dtype=np.float32).reshape(4, 4), "w")
    return model([h.make_node("MatMul", ["x", "w"], ["y"], name="mm")], [info("x")], [info("y")], [w])


def big_weights():
    w = nh.from_array(np.arange(512, dtype=np.float32).reshape(4, 128), "w")
    return model([h.make_node("MatMul", ["x", "w"], ["y"])], [info("x")], [info("y", shape=("N", 128))], [w])


def typed_weights():
    types = [T.FLOAT, T.UINT8, T.INT8, T.UINT16, T.INT16, T.INT32, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE,
             T.UINT32, T.UINT64, T.BFLOAT16]
    weights = [h.make_tensor(f"w{t}", t, [3], [1, 0, 1]) for t in types]
    nodes = [h.make_node("Identity", [w.name], [f"y{w.data_type}"]) for w in weights]
    return model(nodes, [], [info(f"y{t}", t, (3,)) for t in types], weights)


def all_attributes():
    constants = [
        h.make_node("Constant", [], ["a"], value=h.make_tensor("t", T.INT64, [2], [1, 2])),
        h.make_node("Constant", [], ["b"], value_float=1.5),
        h.make_node("Constant", [], ["c"], value_floats=[1.5, 2.5]),
        h.make_node("Constant", [], ["d"], value_int=3),
        h.make_node("Constant", [], ["e"], value_ints=[3, 4]),
        h.make_node("Constant", [], ["f"], value_string="text"),
        h.make_node("Constant", [], ["g"], value_strings=["x", "y"]),
        h.make_node("Optional", [], ["h"], type=h.make_tensor_type_proto(T.FLOAT, None)),
    ]
    return model(constants, [], [info("a", T.INT64, (2,))])


def sparse_weights():
    def sparse(name):
        values = h.make_tensor(name, T.FLOAT, [2], [1.0, 2.0])
        indices = h.make_tensor("i", T.INT64, [2], [3, 9])
        return h.make_sparse_tensor(values, indices, [4, 4])

    nodes = [h.make_node("Constant", [], ["c"], sparse_value=sparse("v")), h.make_node("Add", ["w", "c"], ["y"])]
    return model(nodes, [], [info("y", shape=(4, 4))], sparse=[sparse("w")])


def omitted():
    nodes = [
        h.make_node("Clip", ["x", "", "hi"], ["y"]),
        h.make_node("Dropout", ["y"], ["z", ""], name="drop"),
        h.make_node("LSTM", ["z3", "w", "r"], ["", "h"], hidden_size=4),
        h.make_node("Unsqueeze", ["z", "axes"], ["z3"]),
    ]
    weights = [nh.from_array(np.float32(6), "hi"), nh.from_array(np.ones((1, 16, 4), np.float32), "w"),
               nh.from_array(np.ones((1, 16, 4), np.float32), "r"), nh.from_array(np.array([0]), "axes")]
    return model(nodes, [info("x")], [info("h", shape=None)], weights)


def branches():
    then_branch = h.make_graph([h.make_node("Add", ["x", "k"], ["t"])], "then", [], [info("t")])
    inner = h.make_graph([h.make_node("Sub", ["x", "u"], ["i"])], "inner", [], [info("i")])
    else_branch = h.make_graph(
        [h.make_node("Neg", ["x"], ["u"]),
         h.make_node("If", ["c"], ["v"], then_branch=inner, else_branch=inner)], "else", [], [info("v")])
    node = h.make_node("If", ["c"], ["y"], then_branch=then_branch, else_branch=else_branch)
    return model([node], [info("c", T.BOOL, ()), info("x")], [info("y")], [nh.from_array(np.float32(1), "k")])


def loop():
    body = h.make_graph(
        [h.make_node("Identity", ["c"], ["c_out"]), h.make_node("Add", ["s", "x"], ["s_out"])], "body",
        [info("i", T.INT64, ()), info("c", T.BOOL, ()), info("s")], [info("c_out", T.BOOL, ()), info("s_out")])
    node = h.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    return model([node], [info("n", T.INT64, ()), info("x")], [info("y")])


def functions():
    scale = h.make_function(
        "my", "Scale", ["a", "b"], ["r"],
        [h.make_node("Constant", [], ["k"]), h.make_node("Mul", ["a", "k"], ["m"]),
         h.make_node("Clip", ["m", "b"], ["r"])], [h.make_opsetid("", 17)], ["factor"])
    reference = onnx.AttributeProto(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="factor")
    scale.node[0].attribute.append(reference)
    twice = h.make_function(
        "my", "Twice", ["a"], ["r"],
        [h.make_node("Scale", ["a"], ["t"], domain="my", factor=2.0),
         h.make_node("Scale", ["t", "t"], ["r"], domain="my", factor=3.0)],
        [h.make_opsetid("", 17), h.make_opsetid("my", 1)])
    node = h.make_node("Twice", ["x"], ["y"], domain="my", name="call")
    return model([node], [info("x")], [info("y")], functions=[scale, twice], imports=[("my", 1)])


def unsorted():
    nodes = [h.make_node("Neg", ["b"], ["y"]), h.make_node("Abs", ["a"], ["b"]), h.make_node("Exp", ["x"], ["a"])]
    return model(nodes, [info("x")], [info("y")])


def initialized_inputs():
    w = nh.from_array(np.ones(4, np.float32), "w")
    return model([h.make_node("Add", ["x", "w"], ["y"])], [info("x"), info("w", shape=(4,))],
                 [info("y", shape=("N", None))], [w], ir=3, opset=8)


def declared_types():
    seq = h.make_value_info("s", h.make_sequence_type_proto(h.make_tensor_type_proto(T.INT32, None)))
    opt = h.make_value_info("o", h.make_optional_type_proto(h.make_tensor_type_proto(T.STRING, (2,))))
    mapped = h.make_value_info("m", h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(T.FLOAT, ())))
    nodes = [h.make_node("SequenceAt", ["s", "i"], ["y"])]
    return model(nodes, [seq, opt, mapped, info("i", T.INT64, ()), info("f8", T.FLOAT8E4M3FN)],
                 [info("y", T.INT32, None)], ir=10, opset=21)


def external():
    w = h.make_tensor("w", T.FLOAT, [4], [1, 2, 3, 4])
    w.ClearField("float_data")
    w.data_location = T.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "16")):
        w.external_data.add(key=key, value=value)
    return model([h.make_node("Add", ["x", "w"], ["y"])], [info("x")], [info("y")], [w])


SEEDS = [raw_weights, big_weights, typed_weights, all_attributes, sparse_weights, omitted, branches, loop, functions,
         unsorted, initialized_inputs, declared_types, external]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for seed in SEEDS:
    (folder / f"{seed.__name__}.onnx").write_bytes(seed().SerializeToString())
