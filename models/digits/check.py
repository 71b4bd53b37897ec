"""Print the block sparsity and the test accuracy of the sample models.

    python models/digits/check.py [MODEL.onnx ...]
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

BLOCK = 16
HERE = Path(__file__).parent


def block_peaks(weight):
    """Largest |w| in each 16x16 block of an OIHW weight as OC x (KH*KW*IC)."""
    matrix = weight.transpose(0, 2, 3, 1).reshape(weight.shape[0], -1)
    rows, columns = matrix.shape[0] // BLOCK, matrix.shape[1] // BLOCK
    return np.abs(matrix.reshape(rows, BLOCK, columns, BLOCK)).max(axis=(1, 3))


def print_convs(graph):
    """One line a convolution: its node name, weight shape and zero blocks."""
    weights = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    for node in graph.node:
        if node.op_type != "Conv":
            continue
        weight = weights[node.input[1]]
        shape = "x".join(map(str, weight.shape))
        if weight.shape[0] % BLOCK or weight.shape[1] % BLOCK:
            print(f"  {node.name:<36} {shape:>10}  (not blocked)")
            continue
        zero = block_peaks(weight) == 0
        print(f"  {node.name:<36} {shape:>10}  "
              f"{zero.sum():3} of {zero.size:3} blocks zero  {zero.mean():6.1%}")


def count_correct(path, images, labels):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    pixels = images.astype(np.float32)[:, None]
    (logits,) = session.run(["logits"], {"image": pixels})
    return int((logits.argmax(axis=1) == labels).sum())


def main():
    paths = [Path(arg) for arg in sys.argv[1:]] or sorted(HERE.glob("*.onnx"))
    images = np.load(HERE / "test_images.npy")
    labels = np.load(HERE / "test_labels.npy")
    for path in paths:
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        size = sum(int(np.prod(item.dims)) for item in model.graph.initializer)
        print(f"{path.name}: {size} stored values, {path.stat().st_size} bytes")
        print_convs(model.graph)
        correct = count_correct(path, images, labels)
        print(f"  accuracy {correct}/{len(labels)} = {correct / len(labels):.2%}")


if __name__ == "__main__":
    main()
