# The choice of sparse formats: forced ones, by node, and the report.
python3 -c 'import numpy, onnx' 2>/dev/null || skip "no NumPy and onnx"
python3 - <<'P'
import numpy as np
import onnx
from onnx import helper, numpy_helper
rng = np.random.default_rng(3)
blocks = np.kron((rng.random((8, 8)) < 0.1) | np.eye(8, dtype=bool), np.ones((16, 16)))
blocks[0, 0] = 0
scattered = rng.random((128, 128)) < 0.5
weights = [rng.standard_normal((128, 128)) * mask for mask in (blocks, scattered, np.ones((128, 128)))]
nodes = [helper.make_node("MatMul", [a, f"w{i}"], [b], name=f"layer.{i}") for i, (a, b) in enumerate(["xh", "hg", "gy"])]
x, y = (helper.make_tensor_value_info(n, 1, ["N", 128]) for n in "xy")
graph = helper.make_graph(nodes, "g", [x], [y],
                          [numpy_helper.from_array(w.astype(np.float32), f"w{i}") for i, w in enumerate(weights)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "net.onnx")
P
field() { python3 -c 'import json, sys
rows = {r["node"]: r for r in json.load(open("r.json"))["weights"]}
print(eval(sys.argv[1]))' "$1"; }
shows() { [ "$(field "$1")" = "$2" ] || fail "$1 is $(field "$1"), $2 expected"; }

run 0 "$O3C" net.onnx -O3 -q --dim N=64 --explain --report r.json -o a.so
err_has "layer.0                      128x128"
err_has "1 of 3 weights are sparse"
err_has "1 weights with zeros stay dense: "
shows 'rows["layer.0"]["format"]' bsr-16x16
shows 'rows["layer.1"]["format"]' dense
shows 'rows["layer.2"]["why"]' "it has no zeros"
shows 'rows["layer.0"]["columns"], rows["layer.0"]["columns_known"]' "(64, True)"
shows 'json.load(open("r.json"))["total"]["sparse"]' 1

run 0 "$O3C" net.onnx -O3 -q --sparse-format dense --report r.json -o b.so
shows '[r["format"] for r in rows.values()]' "['dense', 'dense', 'dense']"
shows 'rows["layer.0"]["columns_known"]' False

# What is asked for is done, and what it costs is told.
run 0 "$O3C" net.onnx -O3 --sparse-format bsr-16x16 --report r.json -o c.so
err_has "o3c: warning: node 'layer.1': bsr-16x16, as asked for, stores 100 % of its blocks: about 1.0"
shows '[r["format"] for r in rows.values()]' "['bsr-16x16', 'bsr-16x16', 'dense']"

printf '# comment\n*          dense\n"layer.0"  auto # the last line that matches\nlayer.1  bsr-8x8\n' >formats
run 0 "$O3C" net.onnx -O3 -q --sparse-config formats --report r.json -o d.so
shows '[r["format"] for r in rows.values()]' "['bsr-16x16', 'bsr-8x8', 'dense']"

refused() {
  printf "$1" >formats
  run 1 "$O3C" net.onnx -O3 -q --sparse-config formats -o e.so
  err_is "o3c: error: $2"
  [ ! -e e.so ] || fail "e.so was written"
}
refused 'layer.0\n' "formats:1: there is no format; a line is PATTERN FORMAT"
refused '\n"layer.0 dense\n' "formats:2: a quotation mark is missing; a line is PATTERN FORMAT"
refused 'a dense b\n' "formats:1: there is more than a pattern and a format; a line is PATTERN FORMAT"
refused 'head* dense\n' "'head*' of the sparse configuration matches no product with constant weights"
run 1 "$O3C" net.onnx -O3 -q --sparse-config none -o e.so
err_has "cannot open 'none'"
run 1 "$O3C" net.onnx -O3 -q --sparse-format nm-5:4 -o e.so
err_is "o3c: error: 'nm-5:4' is no sparse format"
run 1 "$O3C" net.onnx -O3 -q --report ./net.onnx -o e.so
err_is "o3c: error: report './net.onnx' is the model itself"
run 1 "$O3C" net.onnx -O3 -q --report e.so -o e.so
err_is "o3c: error: report 'e.so' is the output, too"
rm -f new.so
run 1 "$O3C" net.onnx -O3 -q --report ./new.so -o new.so
err_is "o3c: error: report './new.so' is the output, too"
run 1 "$O3C" net.onnx -O3 -q --report - --emit rewrite -o -
err_is "o3c: error: report and output both want stdout"
run 0 "$O3C" net.onnx -O3 -q --report - -o e.so
cp "$CASE_TMP/stdout" r.json
shows 'len(rows) > 0' True
[ ! -e ./- ] || fail "a file '-' was written"
run 1 "$O3C" net.onnx -O3 -q --measure --sparse-format csr
err_is "o3c: error: measuring chooses between sparse formats, 'csr' is asked for already"
run 1 "$O3C" net.onnx -O3 -q --sparse-format bsr-99999999999x1
err_is "o3c: error: sparse format 'bsr-99999999999x1' has a number outside of 1 to 4096"
run 1 "$O3C" net.onnx -q --sparse-config formats
err_is "o3c: error: a sparse configuration needs opt level 3, it is 1"
run 1 "$O3C" net.onnx -q -O2 --report r.json
err_is "o3c: error: a report on sparse weights needs opt level 3, it is 2"
run 1 "$O3C" net.onnx -q -O2 --sparse-format bsr-16x16
err_is "o3c: error: sparse format 'bsr-16x16' needs opt level 3, it is 2"
run 1 "$O3C" net.onnx -q -O3 --report no/such.json
err_has "cannot write 'no/such.json'"

# Measuring: times of this machine beside the model's, for what it can run and whose sizes are known.
run 0 "$O3C" net.onnx -O3 -q --dim N=64 --measure -j 1 --explain --report r.json -o m.so
err_has "2 products were measured"
shows 'rows["layer.0"]["dense"]["measured_us"] > 0, "measured_us" in rows["layer.2"]["dense"]' "(True, False)"
shows 'sum("measured_us" in o for o in rows["layer.0"]["options"]) > 0' True
shows 'json.load(open("r.json"))["total"]["measured"]' 2
run 0 "$O3C" net.onnx -O3 --measure --report r.json -o n.so
err_has "o3c: warning: 2 products have symbolic sizes and are not measured; --dim and --shape fix the sizes"
run 1 "$O3C" net.onnx -q -O2 --measure
err_is "o3c: error: measuring sparse formats needs opt level 3, it is 2"
run 1 "$O3C" net.onnx -q -O3 --measure --target sm_90
err_is "o3c: error: target 'sm_90' is a GPU: measuring is for CPUs so far"

# What would be ignored is refused: on a GPU, and where the stages that decide are not run.
run 1 "$O3C" net.onnx -q -O3 --target hopper --report r.json -o e.so
err_is "o3c: error: a report on sparse weights: target 'hopper' computes sparse weights densely so far"
run 1 "$O3C" net.onnx -q -O3 --stop-after normalize --sparse-format csr -o e.mlir
err_is "o3c: error: sparse format 'csr' needs stage 'rewrite', the last to run is 'normalize'"
run 0 "$O3C" net.onnx -q -O3 --stop-after lower -o lowered.mlir
run 1 "$O3C" lowered.mlir -q -O3 --report r.json -o e.so
err_is "o3c: error: a report on sparse weights needs stage 'rewrite', the first to run is 'fuse'"
run 1 "$O3C" net.onnx -q --stop-after normalize --explain -o e.mlir
err_has "an explanation needs a stage of 'rewrite' to 'schedule', where the choices are made, the last to run is"
