fake model.so
make_set() {
  mkdir "$1"
  tensor "$1/input_0.pb" x float32 1,3 "$2"
  tensor "$1/input_1.pb" typed:mask bool 1 1
  tensor "$1/input_2.npy" int32 1 3
  tensor "$1/output_0.pb" typed:y float32 1,3 "$3"
  tensor "$1/output_1.pb" typed:sum int64 '' 3
  tensor "$1/output_2.pb" yes bool 1 1
}
make_set a 1 2
make_set b 5 6
make_set c 5 7
run 0 "$O3_RUN" model.so -t a --test-dir b
out_has "set 'a'"
out_has "set 'b'"
out_has "sets: 2 run, 0 differ"
run 1 "$O3_RUN" model.so --inputs-dir a --inputs-dir c --expect-dir a --expect-dir c -t b
out_has "sets: 3 run, 1 differ"
run 1 "$O3_RUN" model.so -t a -t c --json --repeat 2
python3 - "$CASE_TMP/stdout" <<'P'
import json, sys
report = json.load(open(sys.argv[1]))
assert [s["ok"] for s in report["sets"]] == [True, False] and not report["ok"], report
assert [s["inputs_dir"] for s in report["sets"]] == ["a", "c"] and report["sets"][0]["runs"] == 2, report
P
# A file given by name wins over the folder's.
tensor x.npy float32 1,3 4
run 0 "$O3_RUN" model.so --inputs-dir a -i x=x.npy
out_has "output 'y/1': float32 [1,3] min 5 max 5"
mkdir empty
run 1 "$O3_RUN" model.so -t empty
err_is "o3-run: error: not found: set 'empty': 'empty' has no input_0.pb or input_0.npy"
cp b/input_0.pb b/input_3.pb
run 1 "$O3_RUN" model.so -t a -t b
err_is "o3-run: error: invalid argument: set 'b': 'b/input_3.pb' is one file too many: the model has 3 inputs"
rm a/output_1.pb
run 1 "$O3_RUN" model.so -t a
err_is "o3-run: error: invalid argument: set 'a': output 'sum' is not given: the folder of expected outputs must hold a file for each"
rm c/input_1.pb
run 1 "$O3_RUN" model.so --inputs-dir c
err_is "o3-run: error: invalid argument: set 'c': input 'mask' is not given: use --input, --inputs-dir or --random"
run 0 "$O3_RUN" model.so --inputs-dir c --random
