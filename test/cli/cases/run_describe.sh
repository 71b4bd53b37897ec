fake model.so
run 0 "$O3_RUN" model.so
out_is "model: fake
target: x86-64
opt level: O2
build id: 0123abcd
producer: hand
weights: 1234 bytes
inputs:
  x: float32 [N,3]
  mask: bool [N]
  ids/0: int32 [N]
outputs:
  y/1: float32 [N,3]
  sum: int64 []
  yes: bool [N]"
err_is ""
run 1 "$O3_RUN" model.so --dim M=5
err_is "o3-run: error: invalid argument: --dim 'M=5' is not NAME=SIZE for a symbolic dimension of the model's inputs"
out_is ""
run 0 "$O3_RUN" model.so --dim N=5
run 0 "$O3_RUN" --json "$PWD/model.so"
python3 - "$CASE_TMP/stdout" <<'P'
import json, sys
model = json.load(open(sys.argv[1]))["model"]
assert model["opt_level"] == 2 and model["constant_bytes"] == 1234, model
assert model["inputs"][0] == {"name": "x", "dtype": "float32", "shape": ["N", 3]}, model
assert model["outputs"][1] == {"name": "sum", "dtype": "int64", "shape": []}, model
P
