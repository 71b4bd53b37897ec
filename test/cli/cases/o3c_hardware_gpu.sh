# Hardware files of GPUs: what is printed is taken again, kernels follow the figures, and what is wrong is named.
cat >m.mlir <<'M'
func.func @main(%x: tensor<4096x1024xf16> {o3.name = "x"}, %w: tensor<1024x4096xf16> {o3.name = "w"})
    -> (tensor<4096x4096xf32> {o3.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<4096x4096xf32>) {
  ^bb0(%c: f32):
    linalg.yield %zero : f32
  } -> tensor<4096x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                        affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4096x1024xf16>, tensor<1024x4096xf16>) outs(%f : tensor<4096x4096xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %p = arith.extf %a : f16 to f32
    %q = arith.extf %b : f16 to f32
    %r = arith.mulf %p, %q : f32
    %s = arith.addf %c, %r : f32
    linalg.yield %s : f32
  } -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}
M
run 0 "$O3C" --print-hardware --target hopper
out_is '{
  "kind": "gpu",
  "matrix": ["wmma", "mma", "mma-bf16", "wgmma"],
  "sm": 90,
  "ptx": 80,
  "multiprocessors": 132,
  "threads_per_sm": 2048,
  "registers_per_sm": 65536,
  "shared_per_block": 232448,
  "shared_per_sm": 233472,
  "cluster": 8,
  "l2_bytes": 52428800,
  "memory_gbps": 4800,
  "fp32_tflops": 66.9,
  "fp16_tflops": 989
}'
cp "$CASE_TMP/stdout" hopper.json
run 0 "$O3C" --print-hardware --target sm_70
out_has '"multiprocessors": 80'
# The same figures give the same kernels; a card without wgmma has others.
run 0 "$O3C" m.mlir -q -O2 --target hopper -o plain.ptx
run 0 "$O3C" m.mlir -q -O2 --target hopper --hardware hopper.json -o same.ptx
cmp plain.ptx same.ptx
grep -q wgmma plain.ptx || fail "no wgmma"
sed 's/, "wgmma"//' hopper.json >less.json
run 0 "$O3C" m.mlir -q -O2 --target hopper --hardware less.json -o less.ptx
grep -q wgmma less.ptx && fail "wgmma without its name in the file"
# Less shared memory, fewer stages or products of warps; fewer registers than warpgroups take are an error.
launch_has() {
  sed "$1" hopper.json >other.json
  run 0 "$O3C" m.mlir -q -O2 --target hopper --hardware other.json --explain -o a.mlir --emit llvm
  err_has "$2"
}
launch_has "" "gemm: "
stages=$(sed -n 's/.*gemm: .*stages \([0-9]*\).*/\1/p' "$CASE_TMP/stderr")
launch_has s/232448/100000/ "gemm: "
fewer=$(sed -n 's/.*gemm: .*stages \([0-9]*\).*/\1/p' "$CASE_TMP/stderr")
[ "$fewer" -lt "$stages" ] || fail "$fewer stages, and with more shared memory $stages"
launch_has 's/232448/16384/' "mma: "
sed 's/65536/16384/' hopper.json >few.json
run 1 "$O3C" m.mlir -q -O2 --target hopper --hardware few.json -o a.so
err_has "registers a multiprocessor, target 'hopper' gives 16384"
wrong() {
  sed "$2" hopper.json >wrong.json
  run 1 "$O3C" m.mlir --target hopper --hardware wrong.json -o wrong.so
  err_is "o3c: error: hardware file 'wrong.json': $1"
  [ ! -e wrong.so ] || fail "an output was written"
}
wrong "'kind' must be \"gpu\", of a JSON object" 's/"gpu"/"cpu"/'
wrong "'sms' is no key of it; o3c --print-hardware shows them" 's/multiprocessors/sms/'
wrong "'l2_bytes' is missing; o3c --print-hardware shows all keys" '/l2_bytes/d'
wrong "'matrix' is missing; o3c --print-hardware shows all keys" '/matrix/d'
wrong "'multiprocessors' must be an integer from 1 to 1024" 's/132/0/'
wrong "'memory_gbps' must be a number from 1 to 100000" 's/4800/1e7/'
wrong "'shared_per_block' is 232448, it must be at most shared_per_sm, 65536" 's/233472/65536/'
wrong "'sm' is 80, it must be the target's 90" 's/"sm": 90/"sm": 80/'
wrong "'ptx' is 63, it must be at least the target's 80" 's/"ptx": 80/"ptx": 63/'
wrong "'cluster' is 16, it must be at most the target's 8" 's/"cluster": 8/"cluster": 16/'
wrong "'matrix' has 'mfma', which is no name of matrix instructions" 's/wgmma/mfma/'
wrong "'matrix' has 'tcgen05', which target 'hopper' lacks" 's/wgmma/tcgen05/'
run 1 "$O3C" m.mlir --target x86-64-v3 --hardware hopper.json -o wrong.so
err_is "o3c: error: hardware file 'hopper.json': 'kind' must be \"cpu\", of a JSON object"
