# Weights pass through: their number has no say in the peak of memory, on the way in, packed or on the way out.
python3 -c 'import numpy, onnx' 2>/dev/null || skip "no NumPy and onnx"
python3 - <<'E'
import numpy as np
import onnx
from onnx import TensorProto, helper

SIDE = 1024


def weight(name):
    """All lie in the same part of the file, but that is nothing a compiler looks for."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[SIDE, SIDE], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights.bin")
    return tensor


(np.random.default_rng(1).standard_normal((SIDE, SIDE), np.float32) / 32).tofile("weights.bin")
for count in (8, 48):
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [32, SIDE]) for name in ("v0", f"v{count}")]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], [weight(f"w{i}") for i in range(count)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with open(f"m{count}.onnx", "wb") as file:
        file.write(model.SerializeToString())
E
for level in 2 3; do
  for count in 8 48; do
    run 0 "$O3C" m$count.onnx -O$level -q --timing -o m$count.so
    peak[$count]=$(awk '$1 == "all" { print int($5 == "GB" ? $4 * 1000 : $4) }' "$CASE_TMP/stdout" "$CASE_TMP/stderr")
  done
  grown=$((peak[48] - peak[8]))
  [ $grown -lt 60 ] || fail "the peak at -O$level grows by $grown MB with 168 MB of weights"
done
