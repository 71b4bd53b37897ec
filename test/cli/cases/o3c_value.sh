# --value fixes an integer that the input's type holds, exactly; a run with another is refused.
python3 -c 'import onnx' 2>/dev/null || skip "no onnx"
python3 - <<'P'
import onnx
from onnx import helper
for name, kind in (("i8", 3), ("u8", 2), ("i64", 7), ("f32", 1)):
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=1)], "g", [helper.make_tensor_value_info("x", kind, [])],
                              [helper.make_tensor_value_info("y", 1, [])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{name}.onnx")
P
run 0 "$O3C" u8.onnx --value x=255 -o u8.ll
run 0 "$O3C" i64.onnx --value x=9007199254740992 -o i64.ll
for wrong in i8:128 u8:256 i64:9007199254740993; do
  run 1 "$O3C" "${wrong%:*}.onnx" --value "x=${wrong#*:}" -o wrong.so
  err_is "o3c: error: --value x=${wrong#*:}: the input's type, or a double, does not hold the number"
done
run 1 "$O3C" f32.onnx --value x=1 -o wrong.so
err_is "o3c: error: --value x: the input is no single integer, of rank 0 or 1"
[ ! -e wrong.so ] || fail "a library was left"
