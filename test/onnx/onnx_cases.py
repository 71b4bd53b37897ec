"""The cases of ONNX's own backend test data: where they lie, what is in them, how exact they are to be.

Six folders (node, simple, pytorch-operator, pytorch-converted, real, light). A case is a folder with
model.onnx and test_data_set_0/{input,output}_N.pb; one of real/ names a model of light/, whose weights are
constants and whose inputs are, by ONNX's own runner, a ramp from 0 to 1.
"""

import dataclasses
import importlib.util
import json
import os

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
RTOL, ATOL = 1e-3, 1e-7  # of ONNX's runner, where a case does not say otherwise


@dataclasses.dataclass(frozen=True)
class Case:
    name: str  # "node/test_abs"
    model: str
    data: str  # the folder of the test_data_set_N; of a light model, where they are to be written
    light: bool
    rtol: float
    atol: float

    @property
    def kind(self):
        return self.name.split("/")[0]

    def sets(self):
        return sorted(os.path.join(self.data, name) for name in os.listdir(self.data) if name.startswith("test_data_set"))


def data_folder():
    """The folder of the test data: O3_ONNX_TEST_DATA, or the installed package `onnx`; None without either."""
    folder = os.environ.get("O3_ONNX_TEST_DATA")
    if folder:
        if not os.path.isdir(os.path.join(folder, "node")):
            raise FileNotFoundError(f"O3_ONNX_TEST_DATA is '{folder}', where there is no folder 'node'")
        return folder
    package = importlib.util.find_spec("onnx")
    if package is None:
        return None
    folder = os.path.join(os.path.dirname(package.origin), "backend", "test", "data")
    return folder if os.path.isdir(os.path.join(folder, "node")) else None


def case_of(folder, kind, name, scratch):
    place = os.path.join(folder, kind, name)
    facts = {}
    if os.path.exists(os.path.join(place, "data.json")):
        with open(os.path.join(place, "data.json"), encoding="utf-8") as file:
            facts = json.load(file)
    light = "url" in facts
    model = os.path.join(folder, "light", os.path.basename(facts["url"])) if light else os.path.join(place, "model.onnx")
    data = os.path.join(scratch, "light", name) if light else place
    return Case(f"{kind}/{name}", model, data, light, facts.get("rtol", RTOL), facts.get("atol", ATOL))


def all_cases(folder, scratch):
    """Every case of |folder|, sorted; data made for the light ones goes below |scratch|."""
    cases = []
    for kind in KINDS:
        for name in sorted(os.listdir(os.path.join(folder, kind))):
            if os.path.isdir(os.path.join(folder, kind, name)):
                cases.append(case_of(folder, kind, name, scratch))
    return cases


def is_expanded(case):
    """Whether the model is another case's op, a function, written out in the ops of its body."""
    return "_expanded" in case.name


def ops_of(model):
    """The op types in a model file, those in branches and loops too."""
    import onnx

    def walk(nodes):
        for node in nodes:
            yield node.op_type
            for attribute in node.attribute:
                yield from walk(attribute.g.node)

    return set(walk(onnx.load(model, load_external_data=False).graph.node))


def light_data_write(case):
    """Writes the data set of a light model as ONNX's runner does."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(case.model).graph
    weights = {item.name for item in graph.initializer}
    place = os.path.join(case.data, "test_data_set_0")
    os.makedirs(place, exist_ok=True)
    for number, item in enumerate(value for value in graph.input if value.name not in weights):
        shape = [dim.dim_value or 1 for dim in item.type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        ramp = (np.arange(count).reshape(shape) / count).astype(np.float32)
        with open(os.path.join(place, f"input_{number}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(ramp, item.name).SerializeToString())
    for number in range(len(graph.output)):
        link = os.path.join(place, f"output_{number}.pb")
        if not os.path.lexists(link):
            os.symlink(f"{os.path.splitext(case.model)[0]}_output_{number}.pb", link)
