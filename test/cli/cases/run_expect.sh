fake model.so
tensor in.npz x float32 2,3 0 1 2 3 4 5 -- mask bool 2 1 0 -- ids/0 int32 2 40 2
tensor y.npy float32 2,3 1 2 3 4 5 6
run 0 "$O3_RUN" model.so -i in.npz -e y.npy
out_has "  as expected: 0 of 6 elements outside, max error 0 absolute, 0 relative, 0 ULP (rtol 0.001, atol 1e-07)"
tensor y.npy float32 2,3 1 2 3 4.5 5.001 6
run 1 "$O3_RUN" model.so -i in.npz --expect y/1=y.npy
out_has "  DIFFERS: 1 of 6 elements outside, max error 0.5 absolute, 0.111 relative, 1048576 ULP, worst at [1,0]: 4, 4.5 expected (rtol 0.001, atol 1e-07)"
err_is ""
run 0 "$O3_RUN" model.so -i in.npz --expect y/1=y.npy --atol 0.5
run 0 "$O3_RUN" model.so -i in.npz --expect y/1=y.npy --rtol 0.2
run 1 "$O3_RUN" model.so -i in.npz --expect y/1=y.npy --json
python3 - "$CASE_TMP/stdout" <<'P'
import json, sys
report = json.load(open(sys.argv[1]))
check = report["sets"][0]["outputs"][0]["check"]
assert not report["ok"] and not check["ok"] and check["outside"] == 1 and check["worst_index"] == [1, 0], check
assert check["max_abs"] == 0.5 and check["worst_expected"] == 4.5 and check["max_ulp"] == 1048576, check
assert "check" not in report["sets"][0]["outputs"][1]
P
# Integers are exact whatever --atol says, unless --int-atol loosens them.
tensor sum.pb sum int64 '' 43
run 1 "$O3_RUN" model.so -i in.npz -e sum=sum.pb --atol 9
out_has "  DIFFERS: 1 of 1 elements outside, max error 1 absolute, 0.0233 relative, 1 ULP, worst at []: 42, 43 expected"
run 0 "$O3_RUN" model.so -i in.npz -e sum=sum.pb --int-atol 1
tensor yes.npy bool 2 1 1
run 1 "$O3_RUN" model.so -i in.npz -e yes=yes.npy --int-atol 1
# Type and shape must be the same.
tensor sum.npy int32 '' 42
run 1 "$O3_RUN" model.so -i in.npz -e sum=sum.npy
out_has "  DIFFERS: int64 [] came, int32 [] expected"
tensor y.npy float32 3,2 1 2 3 4 5 6
run 1 "$O3_RUN" model.so -i in.npz -e y.npy
out_has "  DIFFERS: float32 [2,3] came, float32 [3,2] expected"
run 1 "$O3_RUN" model.so -i in.npz -e q=y.npy
err_is "o3-run: error: not found: the model has no output 'q', it has: 'y/1', 'sum', 'yes'"
# NaN equals NaN, not a number.
tensor nan.npz x float32 1,3 nan inf 0 -- mask bool 1 1 -- ids/0 int32 1 0
tensor y.npy float32 1,3 nan inf 1
run 0 "$O3_RUN" model.so -i nan.npz -e y.npy
out_has "output 'y/1': float32 [1,3] min 1 max inf mean inf NaN 1"
tensor y.npy float32 1,3 0 inf 1
run 1 "$O3_RUN" model.so -i nan.npz -e y.npy --json
python3 - "$CASE_TMP/stdout" <<'P'
import json, sys
output = json.load(open(sys.argv[1]))["sets"][0]["outputs"][0]
assert output["max"] == "Infinity" and output["first"] == ["NaN", "Infinity", 1] and output["nan"] == 1, output
assert output["check"]["max_abs"] == "Infinity" and output["check"]["worst_got"] == "NaN", output
P
