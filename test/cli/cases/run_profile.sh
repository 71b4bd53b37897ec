fake model.so -DFAKE_KERNELS
run 0 "$O3_RUN" model.so --random --profile 3 -j 1 --warmup 1
out_has "profile of 3 runs, 1 thread: median "
out_has " 3.0000  75.0%        1       2.0 "
out_has "contraction MatMul_0, Add_1"
out_has " 1.0000  25.0%        2 "
out_has "rows Softmax_2"
out_has "outside of kernels"
run 0 "$O3_RUN" --profile=4 --json model.so --random --threads 2
python3 - "$CASE_TMP/stdout" <<'P'
import json, subprocess, sys
profile = json.load(open(sys.argv[1]))["sets"][0]["profile"]
assert profile["runs"] == 4 and profile["threads"] == 2 and profile["median_ms"] > 0, profile
assert profile["peaks"] == "measured" and profile["peak_gflops"] > 0 and profile["copy_gbytes"] > 0, profile
size = subprocess.run(["getconf", "LEVEL2_CACHE_SIZE"], capture_output=True, text=True).stdout.strip()
told = size.isdigit() and int(size) > 0
assert profile["caches"] or not told, profile
assert all(cache["bytes"] > 0 and cache["copy_gbytes"] > 0 for cache in profile["caches"]), profile
first, second, outside = profile["kernels"]
assert first == {"name": "k0_contraction_MatMul_0", "kind": "contraction", "nodes": ["MatMul_0", "Add_1"], "ms": 3,
                 "share": 0.75, "calls": 1, "operations": 6e6, "bytes": 3e6, "gflops": 2, "gbytes": 1}, first
assert second["calls"] == 2 and second["gflops"] == 0, second
assert outside["name"] == "outside of kernels" and outside["kind"] == "", outside
P
fake none.so
run 0 "$O3_RUN" none.so --random --profile=1 -j 1
out_has "outside of kernels"
