"""Models of independent parts that have a result each: made from text, and compared part by part."""

import numpy as np
import onnx
import onnx.parser

import o3_model


def parse(opset, parts, inputs, outputs, weights):
    """|parts|, |inputs| and |outputs|: lists of ONNX's text; |weights|: tensors."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> g ({", ".join(inputs)}) => '
                                    f'({", ".join(outputs)}) {{ {" ".join(parts)} }}')
    model.graph.initializer.extend(weights)
    return model


def differences(library, feeds, expected, bounds):
    """(threads, number of the part, None or what is wrong) with one thread and two; |bounds| are of each part's largest
    expected result."""
    for threads in (1, 2):
        got = o3_model.Model(library).session(threads=threads).run(list(feeds.values()))
        for i, bound in enumerate(bounds):
            error = np.abs(got[i] - expected[i]).max() / np.abs(expected[i]).max()
            yield threads, i, None if error <= bound else f"error {error:.2e} of the largest result"
