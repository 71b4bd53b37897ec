# Hardware files: what is printed is taken again; what is wrong is named.
cat >m.mlir <<'M'
func.func @main(%x: tensor<300x64xf32> {o3.name = "x"}, %w: tensor<64x32xf32> {o3.name = "w"})
    -> (tensor<300x32xf32> {o3.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x32xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<300x32xf32>) {
  ^bb0(%c: f32):
    linalg.yield %zero : f32
  } -> tensor<300x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<300x64xf32>, tensor<64x32xf32>) outs(%f : tensor<300x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<300x32xf32>
  return %y : tensor<300x32xf32>
}
M
run 0 "$O3C" --print-hardware --target x86-64-v4
out_is '{
  "kind": "cpu",
  "cores": 2,
  "vector_bytes": 64,
  "vector_registers": 32,
  "fma_ports": 1,
  "l1_bytes": 32768,
  "l2_bytes": 1048576,
  "l3_bytes": 33554432,
  "memory_gbps": 20
}'
cp "$CASE_TMP/stdout" v4.json
run 0 "$O3C" --print-hardware
python3 - "$CASE_TMP/stdout" <<'P'
import json, os, sys
figures = json.load(open(sys.argv[1]))
assert figures["kind"] == "cpu" and figures["cores"] == len(os.sched_getaffinity(0)), figures
P
run 0 "$O3C" --print-hardware --measure
python3 - "$CASE_TMP/stdout" <<'P'
import json, sys
figures = json.load(open(sys.argv[1]))
assert figures["fma_ports"] in (1, 2) and figures["memory_gbps"] >= 1, figures
P
run 1 "$O3C" --print-hardware --measure --target x86-64-v3
err_is "o3c: error: target 'x86-64-v3' cannot be measured: only 'cpu', this machine's CPU, can"
run 1 "$O3C" --print-hardware --target none
err_has "o3c: error: target 'none' does not exist"
run 1 "$O3C" --print-hardware --target x86-64
err_is "o3c: error: target 'x86-64' is no single machine, but x86-64-v4 and x86-64-v3"
# The same figures give the same code; others do not.
run 0 "$O3C" m.mlir -q -O1 --target x86-64-v4 -o plain.o
run 0 "$O3C" m.mlir -q -O1 --target x86-64-v4 --hardware v4.json -o same.o
cmp plain.o same.o
echo '{"kind": "cpu", "cores": 64, "vector_bytes": 32, "vector_registers": 16}' >other.json
run 0 "$O3C" m.mlir -q -O1 --target x86-64-v4 --hardware other.json --emit llvm -o other.mlir
grep -q 'vector<8xf32>' other.mlir || fail "no vectors of 32 bytes"
grep -q 'vector<16xf32>' other.mlir && fail "vectors of 64 bytes"
# Smaller caches, shorter sums at a time.
echo '{"kind": "cpu", "l1_bytes": 8192}' >small.json
run 0 "$O3C" m.mlir -q -O2 --target x86-64-v3 --explain -o a.so
err_has "(schedule)                   packed: columns 16, k_block 256, lanes 8, panel 128, row_block 66, rows 6"
err_has "memory: an arena of 0.038 MB, 1.00 times what lives at the same time"
run 0 "$O3C" m.mlir -q -O2 --target x86-64-v3 --explain --hardware small.json -o b.so
err_has "(schedule)                   packed: columns 16, k_block 128,"
wrong() {
  echo "$2" >wrong.json
  run 1 "$O3C" m.mlir --target x86-64-v3 --hardware wrong.json -o wrong.so
  err_is "o3c: error: hardware file 'wrong.json'$1"
  [ ! -e wrong.so ] || fail "an output was written"
}
wrong " is no JSON" "{"
wrong " is more than one JSON object" '{"kind": "cpu"} {"cores": 4}'
wrong ": 'kind' must be \"cpu\", of a JSON object" '{"kind": "gpu"}'
wrong ": 'sockets' is no key of it; o3c --print-hardware shows them" '{"kind": "cpu", "sockets": 2}'
wrong ": 'cores' is there twice" '{"kind": "cpu", "cores": 2, "cores": 4}'
wrong ": 'cores' must be an integer from 1 to 1024" '{"kind": "cpu", "cores": 0.5}'
wrong ": 'l2_bytes' must be an integer from 65536 to 1073741824" '{"kind": "cpu", "l2_bytes": "1M"}'
wrong ": 'vector_bytes' is 64, it must be 16, 32 or 64 and at most the target's 32" '{"kind": "cpu", "vector_bytes": 64}'
wrong ": 'vector_registers' is 32, it must be 16 or 32 and at most the target's 16" '{"kind": "cpu", "vector_registers": 32}'
run 1 "$O3C" m.mlir --target x86-64 --hardware v4.json
err_is "o3c: error: target 'x86-64' takes no hardware file: it is not one CPU"
run 1 "$O3C" m.mlir --hardware missing.json
err_has "missing.json"
