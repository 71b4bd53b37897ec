"""Weights that are no plain initializers: zeros have to be found behind what the file says, and used rightly.

Each model has one product for each way; the report has to tell their zeros, and results are compared with float64.
"""

import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import o3_model
from sparse_cases import prune

INPUTS, OUTPUTS, ROWS = 96, 80, 37
FORMATS = ("auto", "csr", "bsr-8x8")


def sparse_tensor(name, weight, flat):
    """With one index a number, into the flattened weight, or one a dimension."""
    places = np.flatnonzero(weight) if flat else np.argwhere(weight)
    return helper.make_sparse_tensor(numpy_helper.from_array(weight[weight != 0], name),
                                     numpy_helper.from_array(places.astype(np.int64), name + "_places"), weight.shape)


class Network:
    """Collects a product for each way; |weights| has what they multiply by."""

    def __init__(self, rng):
        self.rng, self.nodes, self.initializers, self.sparse, self.weights = rng, [], [], [], {}

    def fresh(self):
        """Three quarters of the 16 x 16 blocks are zero; random ones never all."""
        weight = prune(self.rng.standard_normal((INPUTS, OUTPUTS)), (16, 16), 0.75, self.rng)
        weight[:16, :16] = self.rng.standard_normal((16, 16))
        return weight.astype(np.float32)

    def constant(self, name, value):
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def product(self, way, source, weight, **attributes):
        self.weights[way] = weight.astype(np.float64)
        self.nodes.append(helper.make_node("Gemm" if attributes else "MatMul", ["x", source], [f"y_{way}"], name=way,
                                           **attributes))

    def behind(self, way, op, inputs, weight, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"w_{way}"], **attributes))
        self.product(way, f"w_{way}", weight)

    def fill(self):
        for way, flat in (("sparse_flat", True), ("sparse_places", False)):
            weight = self.fresh()
            self.sparse.append(sparse_tensor(way, weight, flat))
            self.product(way, way, weight)
        weight = self.fresh()
        self.behind("transpose", "Transpose", [self.constant("t", weight.T.copy())], weight, perm=[1, 0])
        self.product("gemm", self.constant("g", weight.T.copy()), weight, transB=1)
        weight = self.fresh()
        shape = self.constant("shape", np.array(weight.shape, np.int64))
        self.behind("reshape", "Reshape", [self.constant("r", weight.reshape(-1, 8)), shape], weight)
        half = self.fresh().astype(np.float16)
        self.behind("cast", "Cast", [self.constant("c", half)], half, to=TensorProto.FLOAT)
        whole = np.clip(np.rint(self.fresh() * 40), -127, 127).astype(np.int8)
        scale = self.rng.uniform(0.01, 0.1, OUTPUTS).astype(np.float32)
        names = [self.constant("q", whole), self.constant("scale", scale), self.constant("zero", np.zeros(OUTPUTS, np.int8))]
        self.behind("dequantize", "DequantizeLinear", names, whole * scale.astype(np.float64), axis=1)

    def model(self):
        self.fill()
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, INPUTS])
        outputs = [helper.make_tensor_value_info(f"y_{way}", TensorProto.FLOAT, None) for way in self.weights]
        graph = helper.make_graph(self.nodes, "g", [x], outputs, self.initializers, sparse_initializer=self.sparse)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check_way(way, weight, x, got, row, wanted):
    zeros = int((weight == 0).sum())
    if row is None or row["zeros"] != zeros:
        return f"{way}: the report has {row and row['zeros']} zeros, there are {zeros}"
    if row["format"] not in ((wanted,) if wanted != "auto" else {o["format"] for o in row["options"]}):
        return f"{way}: it is {row['format']}"
    error, limit = np.abs(got - x @ weight).max(), 1e-5 * max(1, np.abs(x).max() * np.abs(weight).sum(0).max())
    return None if error <= limit else f"{way}: off by {error}, at most {limit} is right"


def outcome(rng, wanted, library):
    """None, or what is wrong."""
    network = Network(rng)
    onnx.save(network.model(), library + ".onnx")
    x = rng.standard_normal((ROWS, INPUTS)).astype(np.float32)
    try:
        o3_model.compile_model(library + ".onnx", library, 3, ["--sparse-format", wanted, "--report", library + ".json"])
        results = o3_model.Model(library).session(threads=2).run([x])
    except o3_model.O3Error as error:
        return f"{error.code}: {error}"
    with open(library + ".json", encoding="utf-8") as file:
        rows = {row["node"]: row for row in json.load(file)["weights"]}
    wrong = [check_way(way, weight, x.astype(np.float64), got, rows.get(way), wanted)
             for (way, weight), got in zip(network.weights.items(), results)]
    return "; ".join(filter(None, wrong)) or None


def run(scratch, labels, seed):
    """{(label, level): None or what is wrong} for the cases whose labels hold one of |labels|."""
    results = {}
    for number, wanted in enumerate(FORMATS):
        label = f"sparse weights {wanted}"
        if not labels or any(part in label for part in labels):
            results[label, 3] = outcome(np.random.default_rng([seed, 78, number]), wanted,
                                        os.path.join(scratch, f"weights-{wanted}.so"))
    return results
