"""A network as a list of nodes, with what every value of it should be at each of its trials.

A value is kept three times: as float64 gives it, and twice with noise of the size of a rounding error added after
every node. How far these are apart says how far a machine that rounds may be off; so a bound follows the sums and
the cancellations of this very network, and needs no table of tolerances.
"""

import dataclasses

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

import net_reference_rare  # noqa: F401: adds its rules
import net_reference_wide  # noqa: F401
from net_reference import RULES

NUMBERS = {"f32": 1, "u8": 2, "i8": 3, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "e4m3fn": 17, "e4m3fnuz": 18,
           "e5m2": 19, "e5m2fnuz": 20}
DTYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "u8": np.uint8, "i8": np.int8, "i32": np.int32,
          "i64": np.int64, "bool": np.bool_, "e4m3fn": ml_dtypes.float8_e4m3fn, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
          "e5m2": ml_dtypes.float8_e5m2, "e5m2fnuz": ml_dtypes.float8_e5m2fnuz}
FLOATS = tuple(np.dtype(DTYPES[kind]) for kind in ("f32", "f16", "f64"))
EPSILON = {"f32": 2.0**-23, "f16": 2.0**-10, "f64": 2.0**-52, "bf16": 2.0**-7, "tf32": 2.0**-10}
# Below it roundings are no longer in proportion.
SMALLEST = {"f32": 2.0**-120, "f16": 2.0**-23, "f64": 2.0**-1000, "bf16": 2.0**-120, "tf32": 2.0**-120}
ROUNDINGS = 24  # how many of them a result may be off
LARGEST = {"f32": 1e5, "f16": 2e3, "f64": 1e9, "bf16": 1e5, "tf32": 1e5}
OWN_DOMAIN = "com.microsoft"
IR_VERSIONS = {13: 9, 17: 9, 18: 9, 20: 9, 21: 10, 23: 11, 24: 11, 26: 13}  # by the opsets that are drawn
CASTS = ("ToFloat8", "FromFloat8")  # names of the two that Cast is beside conversions of wider types


class Unfit(Exception):
    """A node that cannot stand here, or whose result no machine could be held to."""


@dataclasses.dataclass
class Node:
    op: str
    inputs: list
    outputs: list
    attrs: dict


@dataclasses.dataclass
class Input:
    """|dims|: sizes, or names of symbols; |arrays|: one for each trial."""

    kind: str
    dims: list
    arrays: list


def float_kind(array, kind):
    return kind if array.dtype == np.float64 else next(k for k, d in DTYPES.items() if d == array.dtype)


def as_double(array):
    return array.astype(np.float64) if array.dtype in FLOATS else array


def spread(three):
    """How far noise has moved each element."""
    base, *others = (x.astype(np.float64) for x in three)
    with np.errstate(invalid="ignore"):
        moved = np.maximum(*(np.where(base == x, 0, np.abs(x - base)) for x in others))
    return np.where(np.isfinite(moved), moved, 0)


def bound(three):
    moved = spread(three)
    return ROUNDINGS * np.maximum(moved, np.sqrt((moved**2).mean()) if moved.size else 0)


def listed(results):
    return results if isinstance(results, list) else [np.asarray(results)]


def evaluate(node, inputs, rounded, rng):
    """The results of |node|, each three times, from |inputs| likewise (None: left out)."""
    rule = RULES[node.op]
    variants = [[x and x[i] for x in inputs] for i in range(3)]
    if rule.jumps:
        margin = max((bound(x).max(initial=0) for x in inputs if x and x[0].dtype == np.float64), default=0)
        if margin and rule.jumps(node.attrs, *variants[0]).min(initial=np.inf) <= margin:
            raise Unfit("near a jump")
    if rule.rounds is not None:  # what is near the middle of two steps is rounded up in one, down in the other
        three, i = inputs[rule.rounds], rule.rounds
        margin = bound(three) + 4 * EPSILON[rounded] * np.abs(three[0])
        variants[1][i], variants[2][i] = variants[1][i] + margin, variants[2][i] - margin
    results = [listed(rule.compute(node.attrs, *v)) for v in variants]
    if rule.terms:
        for number, terms in enumerate(rule.terms(node.attrs, results[0], *variants[0])):
            if results[0][number].dtype == np.float64:
                step = EPSILON[rounded] * terms + SMALLEST[rounded]
                for i in (1, 2):
                    results[i][number] = results[i][number] + step * rng.choice([-1.0, 1.0], results[i][number].shape)
    return [list(three) for three in zip(*results)]


class Net:
    """|trials|: for each of them {name: the value three times}; |kind|: of the floats; |rounded|: what they are
    rounded to on their way."""

    def __init__(self, kind, rounded, opset, trials, rng):
        self.kind, self.rounded, self.opset, self.rng = kind, rounded, opset, rng
        self.inputs, self.constants, self.nodes, self.outputs = {}, {}, [], []
        self.trials = [{} for _ in range(trials)]

    def given(self, array):
        """Three times an input or constant, which is rounded where the network is computed in another type that does
        not hold it: an exponent of 2 stays one."""
        base = as_double(array)
        if self.rounded == self.kind or base.dtype != np.float64:
            return [base] * 3
        digits = np.frexp(base)[0] * 2 / EPSILON[self.rounded]
        step = np.where(digits == np.floor(digits), 0, EPSILON[self.rounded] * np.abs(base))
        step = step * self.rng.choice([-1.0, 1.0], base.shape)
        return [base, base + step, base - step]

    def add_input(self, name, item):
        self.inputs[name] = item
        for trial, array in zip(self.trials, item.arrays):
            trial[name] = self.given(array)

    def add_constant(self, name, array):
        self.constants[name] = array
        for trial in self.trials:
            trial[name] = self.given(array)

    def add_node(self, node):
        """Raises Unfit, with nothing changed, when the node makes no sense here."""
        found = []
        with np.errstate(all="ignore"):
            for trial in self.trials:
                try:
                    found.append(evaluate(node, [trial[x] if x else None for x in node.inputs], self.rounded, self.rng))
                except (ValueError, IndexError, ZeroDivisionError) as error:
                    raise Unfit(str(error)) from None
        for results in found:
            for three in results:
                if three[0].dtype == np.float64 and not np.abs(three[0]).max(initial=0) < LARGEST[self.rounded]:
                    raise Unfit("too large")
                if three[0].size > 50000:
                    raise Unfit("too many elements")
        for trial, results in zip(self.trials, found):
            trial.update(zip(node.outputs, results))
        self.nodes.append(node)

    def dtype_of(self, name):
        array = self.trials[0][name][0]
        return float_kind(array, self.kind)

    def graph_attrs(self, node):
        """The bodies of branches and loops, which are named by one op each; other attributes as they are."""
        if node.op not in ("If", "Loop", "Scan"):
            return node.attrs
        x, y, out = node.inputs[-2], node.inputs[-1], node.outputs[0]
        value = helper.make_tensor_value_info
        number = NUMBERS[self.dtype_of(x)]
        if node.op == "Scan":
            v, row, w, each = (f"{out}_{key}" for key in ("v", "row", "w", "each"))
            nodes = [helper.make_node(node.attrs["body"], [v, row], [w]), helper.make_node("Identity", [w], [each])]
            body = helper.make_graph(nodes, "body", [value(n, number, None) for n in (v, row)], [value(n, number, None) for n in (w, each)])
            return {"body": body, "num_scan_inputs": 1}
        if node.op == "If":
            return {f"{key}_branch": helper.make_graph([helper.make_node(node.attrs[key], [x, y], [f"{out}_{key}"])], key, [],
                                                       [value(f"{out}_{key}", number, None)]) for key in ("then", "else")}
        names = {key: f"{out}_{key}" for key in ("i", "go", "v", "on", "w", "each")}
        nodes = [helper.make_node("Identity", [names["go"]], [names["on"]]),
                 helper.make_node(node.attrs["body"], [names["v"], y], [names["w"]]),
                 helper.make_node("Identity", [names["w"]], [names["each"]])]
        inputs = [value(names["i"], 7, []), value(names["go"], 9, []), value(names["v"], number, None)]
        outputs = [value(names["on"], 9, []), value(names["w"], number, None), value(names["each"], number, None)]
        return {"body": helper.make_graph(nodes, "body", inputs, outputs)}

    def onnx_node(self, node, number):
        attrs = dict(self.graph_attrs(node))
        domain, _, op = node.op.rpartition(".")
        if op in CASTS:
            op, attrs = "Cast", {"to": attrs.get("to", NUMBERS[self.kind])}
        elif op == "Cast" and attrs["to"] in (1, 10, 11):
            attrs["to"] = NUMBERS[self.kind]
        elif op == "ConstantOfShape":
            attrs["value"] = onnx.numpy_helper.from_array(np.array([attrs["value"]], DTYPES[self.kind]))
        inputs = node.inputs
        if node.op in ("If", "Loop"):
            inputs = inputs[:1] if node.op == "If" else [inputs[0], "", inputs[1]]
        return helper.make_node(op, inputs, node.outputs, f"{op}_{number}", domain=domain, **attrs)

    def onnx_nodes(self, node, number):
        """One, or those of a list of parts, of which the first may become the last."""
        if node.op != "PartsJoined":
            return [self.onnx_node(node, number)]
        x, size, zero = node.inputs
        parts, first, rest, turned = (f"{node.outputs[0]}_{key}" for key in ("parts", "first", "rest", "turned"))
        nodes = [helper.make_node("SplitToSequence", [x, size], [parts], axis=node.attrs["axis"])]
        if node.attrs["turned"]:
            nodes += [helper.make_node("SequenceAt", [parts, zero], [first]), helper.make_node("SequenceErase", [parts, zero], [rest]),
                      helper.make_node("SequenceInsert", [rest, first], [turned])]
            parts = turned
        return [*nodes, helper.make_node("ConcatFromSequence", [parts], node.outputs, axis=node.attrs["to"])]

    def model(self):
        graph = onnx.GraphProto(name="net")
        read = {name for node in self.nodes for name in node.inputs} | set(self.outputs)
        for name, item in self.inputs.items():
            graph.input.append(helper.make_tensor_value_info(name, NUMBERS[item.kind], item.dims))
        for name, array in self.constants.items():
            if name in read:
                graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        for number, node in enumerate(self.nodes):
            graph.node.extend(self.onnx_nodes(node, number))
        for name in self.outputs:
            graph.output.append(helper.make_tensor_value_info(name, NUMBERS[self.dtype_of(name)], None))
        domains = [helper.make_opsetid("", self.opset), helper.make_opsetid(OWN_DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSIONS[self.opset])

    def difference(self, trial, name, got):
        """None, or how |got| is not what output |name| should be."""
        three = self.trials[trial][name]
        want = three[0]
        if got.shape != want.shape or got.dtype != DTYPES[self.dtype_of(name)]:
            return f"{name} is {got.dtype}{list(got.shape)}, {self.dtype_of(name)}{list(want.shape)} was expected"
        want = want.astype(np.float64)
        allowed = bound(three) + (EPSILON[self.rounded] * np.abs(want) if got.dtype in FLOATS else 0)
        got = got.astype(np.float64) if got.dtype.itemsize == 1 else got
        with np.errstate(invalid="ignore"):
            bad = ~((np.abs(got - want) <= allowed) | (got == want) | (np.isnan(got) & np.isnan(want)))
        if not bad.any():
            return None
        at = np.unravel_index(np.argmax(bad), bad.shape)
        return (f"{bad.sum()} of {bad.size} elements of {name} {list(want.shape)} are off, at {[int(i) for i in at]}: "
                f"{got[at]} for {want[at]:.9g}, off by {abs(float(got[at]) - want[at]):.3g} where {allowed[at]:.3g} is allowed")


def without(net, index):
    """The net in which the results of node |index| are inputs; what led to them alone is gone."""
    smaller = Net(net.kind, net.rounded, net.opset, len(net.trials), net.rng)
    smaller.inputs, smaller.constants, smaller.outputs = dict(net.inputs), net.constants, list(net.outputs)
    smaller.trials = net.trials
    smaller.nodes = net.nodes[:index] + net.nodes[index + 1:]
    for name in net.nodes[index].outputs:
        kind = net.dtype_of(name)
        arrays = [trial[name][0].astype(DTYPES[kind]) for trial in net.trials]
        symbolic = len({a.shape for a in arrays}) > 1
        smaller.inputs[name] = Input(kind, [f"{name}_{i}" if symbolic else d for i, d in enumerate(arrays[0].shape)], arrays)
    return pruned(smaller)


def with_outputs(net, outputs):
    smaller = Net(net.kind, net.rounded, net.opset, len(net.trials), net.rng)
    smaller.inputs, smaller.constants, smaller.nodes, smaller.trials = dict(net.inputs), net.constants, net.nodes, net.trials
    smaller.outputs = list(outputs)
    return pruned(smaller)


def pruned(net):
    """Without the nodes and inputs that no output needs."""
    needed, kept = set(net.outputs), []
    for node in reversed(net.nodes):
        if needed & set(node.outputs):
            needed |= set(node.inputs)
            kept.append(node)
    net.nodes = kept[::-1]
    net.inputs = {name: item for name, item in net.inputs.items() if name in needed}
    return net


def recomputed(net):
    """The values anew from the inputs; raises Unfit."""
    fresh = Net(net.kind, net.rounded, net.opset, len(net.trials), np.random.default_rng(0))
    for name, item in net.inputs.items():
        fresh.add_input(name, item)
    for name, array in net.constants.items():
        fresh.add_constant(name, array)
    for node in net.nodes:
        fresh.add_node(node)
    fresh.outputs = net.outputs
    return fresh
