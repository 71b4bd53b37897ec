model=$O3_ROOT/models/digits/digits_sparse.onnx
check() {
  python3 -c "import json, sys
r = json.load(open(sys.argv[1]))
$1" "$CASE_TMP/stdout"
}
run 0 "$O3C" "$model" --json -q -o d.so
err_is ""
check '
import os
assert r["output"] == "d.so" and r["bytes"] == os.path.getsize("d.so"), r
assert r["level"] == 1 and r["target"] and r["ms"] > 0 and r["peak_rss"] > 0, r
assert [s["name"] for s in r["stages"]][:3] == ["import", "normalize", "rewrite"], r
assert all(s["ms"] >= 0 and s["peak_rss"] > 0 for s in r["stages"]), r
assert r["inputs"][0]["name"] == "image" and r["inputs"][0]["dtype"] == "float32", r
assert r["inputs"][0]["shape"][1:] == [1, 8, 8] and r["outputs"][0]["name"] == "logits", r'
run 1 "$O3C" none.onnx --json
err_is ""
check 'assert r == {"error": "model '"'none.onnx'"' does not exist", "code": "not found"}, r'
run 0 "$O3C" "$model" --timing -q -o d.so
for part in import package "peak memory" all; do err_has "$part"; done
run 0 "$O3C" "$model" -v -O3 -o d.so
err_has "[2/12] normalize"
err_has "o3c: wrote d.so ("
run 1 bash -c '"$O3C" "$0" --json -q -o full.so >/dev/full' "$model"
err_is "o3c: error: the JSON object cannot be written"
[ ! -e full.so ] || fail "a failed run left its library"
# A link to the output stays, what it leads to goes; so does the header beside an archive.
touch real.a
ln -s real.a link.a
run 1 bash -c '"$O3C" "$0" --json -q -o link.a >/dev/full' "$model"
err_is "o3c: error: the JSON object cannot be written"
[ -L link.a ] || fail "a failed run removed the link to its output"
[ ! -e real.a ] && [ ! -e link.h ] || fail "a failed run left its archive or header"
