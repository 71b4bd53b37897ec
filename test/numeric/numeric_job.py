"""One job of the numeric suite: many points as parts of one model, built, compiled, run and compared.

The points do not share a value; their names begin with p0_, p1_, ... A point that o3c refuses by name is taken out
and the rest compiled again; when the message names none, the job is split. Runs in a process of its own, since
compiled code may crash.
"""

import os
import re
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnx.shape_inference
from onnx import TensorProto, helper

import o3_model
from numeric_compare import difference
from numeric_row import DTYPES, NONE, TOLERANCES, is_constant, is_float
from numeric_rows import LEVELS, levels_of

NUMBERS = {name: o3_model.NUMBERS[np.dtype(dtype)] for name, dtype in DTYPES.items()}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
IR_VERSION = 10
DEFAULT_OPSET = 20
# Winograd convolutions, which O3 alone makes: 4 to 8 times the error of direct ones.
WINOGRAD_FACTOR = 8
WIDER = {TensorProto.FLOAT16: TensorProto.FLOAT, TensorProto.BFLOAT16: TensorProto.FLOAT}


def tolerance_factor(point, level, values):
    """What multiplies the type's tolerances. Numbers of both signs that are summed one after the other leave a result
    that may be near zero, and errors of the size that the sum has had on its way: four roundings of each term."""
    winograd = WINOGRAD_FACTOR if level == 3 and "Conv" in point.label() else 1
    terms = point.row.option("terms", 1)
    return max(point.row.option("tol", 1) * winograd, (terms(*values) if callable(terms) else terms) / 4)


def tensor_proto(name, array):
    return helper.make_tensor(name, o3_model.NUMBERS[array.dtype], array.shape, array.tobytes(), raw=True)


def nodes_of(row):
    if "=" in row.op:
        return list(onnx.parser.parse_graph(f"g () => () {{ {row.op} }}").node)
    inputs = ["" if item is NONE else f"x{i}" for i, item in enumerate(row.inputs)]
    while inputs and not inputs[-1]:
        inputs.pop()
    return [helper.make_node(row.op, inputs, [f"y{i}" for i in range(row.option("outputs", 1))], **row.attrs)]


def renamed(node, prefix, number):
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = f"{prefix}{number}"
    copy.input[:] = [prefix + name if name else "" for name in node.input]
    copy.output[:] = [prefix + name for name in node.output]
    for attribute in copy.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            rename_graph(attribute.g, prefix)
    return copy


def rename_graph(graph, prefix):
    """A branch or the body of a loop: its own names, and those that it takes from outside."""
    for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        value.name = prefix + value.name
    nodes = [renamed(node, prefix, i) for i, node in enumerate(graph.node)]
    del graph.node[:]
    graph.node.extend(nodes)


class Part:
    """A point in a model."""

    def __init__(self, point, number, seed):
        self.point, self.prefix, self.seed = point, f"p{number}_", seed
        self.data = [point.arrays(values, seed) for values in point.sizes]
        self.expected = []

    def variables(self):
        return [i for i, item in enumerate(self.point.row.inputs) if item is not NONE and not is_constant(item)]

    def feeds(self, trial):
        return {f"{self.prefix}x{i}": self.data[trial][i] for i in self.variables()}

    def add_to(self, graph):
        nodes = nodes_of(self.point.row)
        graph.node.extend(renamed(node, self.prefix, i) for i, node in enumerate(nodes))
        for i, item in enumerate(self.point.row.inputs):
            name = f"{self.prefix}x{i}"
            if item is not NONE and is_constant(item):
                graph.initializer.append(tensor_proto(name, self.data[0][i]))
            elif item is not NONE:
                shape = [self.prefix + dim if isinstance(dim, str) else dim for dim in self.point.declared(item)]
                graph.input.append(helper.make_tensor_value_info(name, NUMBERS[self.point.input_dtype(item)], shape))
        for i in range(self.point.row.option("outputs", 1)):
            graph.output.append(self.output_info(i))

    def output_info(self, number):
        """A static part declares its result's shape, so that what o3c infers is held against it."""
        name = f"{self.prefix}y{number}"
        if not self.expected:
            return onnx.ValueInfoProto(name=name)
        array = self.expected[0][number]
        shape = None if self.point.symbolic else array.shape
        return helper.make_tensor_value_info(name, o3_model.NUMBERS[array.dtype], shape)


def model_of(parts, opset):
    model = onnx.ModelProto(ir_version=IR_VERSION, producer_name="o3 numeric test")
    model.opset_import.extend([helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    model.graph.name = "numeric"
    for part in parts:
        part.add_to(model.graph)
    return model


# ---- What is right ----

def numpy_reference(part, arrays):
    point = part.point
    wide = [None if a is None else a.astype(np.float64) if NAMES[a.dtype] in TOLERANCES else a for a in arrays]
    with np.errstate(all="ignore"):
        results = point.row.ref(*wide)
    return list(results) if isinstance(results, (list, tuple)) else [np.asarray(results)]


def widened(model):
    """The model with its 16-bit floats made float32, for ONNX Runtime has few kernels for them."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for item in [*copy.graph.input, *copy.graph.output]:
        tensor = item.type.tensor_type
        tensor.elem_type = WIDER.get(tensor.elem_type, tensor.elem_type)
    for number, item in enumerate(copy.graph.initializer):
        if item.data_type in WIDER:
            array = onnx.numpy_helper.to_array(item).astype(np.float32)
            copy.graph.initializer[number].CopyFrom(tensor_proto(item.name, array))
    return copy


class Runtime:
    """ONNX Runtime on the one part, or where that lacks a kernel ONNX's reference evaluator."""

    def __init__(self, part, opset):
        import onnxruntime

        model = onnx.shape_inference.infer_shapes(widened(model_of([part], opset)))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        missing = onnxruntime.capi.onnxruntime_pybind11_state
        try:
            self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        except (missing.NotImplemented, missing.Fail, missing.InvalidGraph):
            self.session = onnx.reference.ReferenceEvaluator(model)

    def run(self, feeds):
        wide = {name: a.astype(np.float32) if a.dtype in (np.float16, ml_dtypes.bfloat16) else a
                for name, a in feeds.items()}
        return self.session.run(None, wide)


def result_dtype(part, array):
    """What the model gives: the reference has computed floats in a type of its own."""
    row, point = part.point.row, part.point
    if "to" in row.attrs:
        return o3_model.DTYPES[row.attrs["to"]]
    if array.dtype in (np.float32, np.float64):
        return DTYPES[point.dtype] if is_float(point.dtype) and "Cast" not in row.op else np.float32
    return array.dtype


def fill_expected(part, opset):
    """Sets part.expected: for each trial the outputs in the model's types."""
    runtime = None if part.point.row.ref else Runtime(part, opset)
    expected = []
    for trial, arrays in enumerate(part.data):
        wide = runtime.run(part.feeds(trial)) if runtime else numpy_reference(part, arrays)
        with np.errstate(all="ignore"):
            expected.append([np.asarray(a).astype(result_dtype(part, np.asarray(a))) for a in wide])
    part.expected = expected


# ---- The job ----

class Job:
    """|points| of one opset; |note| is called with what is going on, for the parent to know after a crash."""

    def __init__(self, points, opset, seed, note):
        self.opset, self.note = opset, note
        self.results = {}  # (label, level) -> None or what is wrong
        self.labels = [point.label() for point in points]
        note("reference")
        self.parts = []
        for number, point in enumerate(points):
            part = Part(point, number, seed)
            try:
                fill_expected(part, opset)
                self.parts.append(part)
            except Exception as error:  # the row itself is wrong: it says so and fails
                self.fail(part, f"no reference: {type(error).__name__}: {error}")

    def fail(self, part, what, levels=None):
        for level in levels or levels_of(part.point):
            self.results[part.point.label(), level] = what

    def run(self, folder):
        for level in LEVELS:
            self.run_level([part for part in self.parts if level in levels_of(part.point)], level, folder)
        return self.results

    def run_level(self, parts, level, folder):
        if not parts:
            return
        self.note(f"O{level} compile")
        path = os.path.join(folder, f"job{len(parts)}.onnx")
        onnx.save(model_of(parts, self.opset), path)
        library = tempfile.mktemp(suffix=".so", dir=folder)
        try:
            o3_model.compile_model(path, library, level, ("--threads", "1"), seconds=120)
        except o3_model.O3Error as error:
            self.blame(parts, level, folder, error)
            return
        self.note(f"O{level} run")
        self.run_model(o3_model.Model(library), parts, level)

    def blame(self, parts, level, folder, error):
        """Fails the part that the message names and goes on without it; splits the job when it names none."""
        named = re.search(r"\bp(\d+)_", str(error))
        guilty = [part for part in parts if named and part.prefix == named[0]] or (parts if len(parts) == 1 else [])
        if guilty:
            self.fail(guilty[0], f"o3c: {error.code}: {error}", [level])
            self.run_level([part for part in parts if part is not guilty[0]], level, folder)
        else:
            middle = len(parts) // 2
            self.run_level(parts[:middle], level, folder)
            self.run_level(parts[middle:], level, folder)

    def run_model(self, model, parts, level):
        """Trial t runs every part's trial t, or its last one where it has fewer."""
        session = model.session(threads=2)
        names = [name for name, _, _ in model.outputs]
        for part in parts:
            self.results[part.point.label(), level] = None
        for trial in range(max(len(part.data) for part in parts)):
            now = {part.prefix: min(trial, len(part.data) - 1) for part in parts}
            feeds = {}
            for part in parts:
                feeds.update(part.feeds(now[part.prefix]))
            try:
                outputs = dict(zip(names, session.run_named(feeds)))
            except o3_model.O3Error as error:
                self.blame_run(parts, level, trial, error)
                return
            for part in parts:
                self.compare(part, level, now[part.prefix], outputs)

    def blame_run(self, parts, level, trial, error):
        named = re.search(r"\bp(\d+)_", str(error))
        for part in parts:
            if len(parts) == 1 or (named and part.prefix == named[0]):
                self.fail(part, f"run {trial}: {error}", [level])
            else:
                self.results[part.point.label(), level] = ("again", part)

    def compare(self, part, level, trial, outputs):
        for i, want in enumerate(part.expected[trial]):
            factor = tolerance_factor(part.point, level, part.point.sizes[trial])
            what = difference(outputs[f"{part.prefix}y{i}"], want, factor)
            key = part.point.label(), level
            if what and not self.results[key]:
                where = f" with sizes {part.point.sizes[trial]}" if part.point.symbolic else ""
                self.results[key] = f"output {i}{where}: {what}"
