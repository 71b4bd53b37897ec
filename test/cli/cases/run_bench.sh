fake model.so
run 0 "$O3_RUN" model.so --random --bench 20 --warmup 2
out_has "time of 20 runs after 2 to warm up, ms: median "
out_has " runs per second"
run 0 "$O3_RUN" --bench=7 --warmup 0 --json model.so --random
python3 - "$CASE_TMP/stdout" <<'P'
import json, sys
bench = json.load(open(sys.argv[1]))["sets"][0]["bench"]
assert bench["runs"] == 7 and bench["warmup"] == 0, bench
assert 0 < bench["min_ms"] <= bench["median_ms"] <= bench["p90_ms"] <= bench["p99_ms"] <= bench["max_ms"], bench
P
run 1 "$O3_RUN" model.so --bench
err_is "o3-run: error: invalid argument: input 'x' is not given: use --input, --inputs-dir or --random"
run 0 "$O3_RUN" model.so --random --verbose
err_is "o3-run: note: loaded 'model.so': model 'fake' for x86-64
o3-run: note: the session runs the code for x86-64
o3-run: note: the session holds 4096 bytes"
