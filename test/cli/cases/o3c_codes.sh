# One library with code for several processors: what runs, and what an environment variable can ask for.
cat >scale.mlir <<'M'
func.func @main(%x: tensor<5xf32> {o3.name = "x"}) -> (tensor<5xf32> {o3.name = "y"}) {
  %w = arith.constant dense<[2.0, 3.0, 5.0, 7.0, 11.0]> : tensor<5xf32>
  %e = tensor.empty() : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x, %w : tensor<5xf32>, tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  return %y : tensor<5xf32>
}
M
tensor x.npy float32 5 1 2 3 4 5
tensor y.npy float32 5 2 6 15 28 55
for ending in so a o; do
  run 0 "$O3C" scale.mlir -O2 -q --target x86-64 --dump-dir dump -o "scale.$ending"
  err_is ""
done
for code in v3 v4; do
  for file in 07-bufferize 10-llvm; do [ -s "dump/${file}_x86_64_$code.mlir" ] || fail "no dump of $file for $code"; done
  [ -s "dump/11-object_x86_64_$code.o" ] || fail "no object for $code"
done
has_code() { grep -qw avx2 /proc/cpuinfo && { [ "$1" = v3 ] || grep -qw avx512vl /proc/cpuinfo; }; }
for code in v3 v4; do
  if has_code $code; then
    run 0 env O3_CPU_CODE=x86-64-$code "$O3_RUN" scale.so -v -i x.npy -e y.npy
    err_has "the session runs the code for x86-64-$code"
  else
    run 1 env O3_CPU_CODE=x86-64-$code "$O3_RUN" scale.so -i x.npy
    err_has "this model was compiled for x86-64-$code and needs"
  fi
done
run 1 env O3_CPU_CODE=avx "$O3_RUN" scale.so -i x.npy
err_is "o3-run: error: unsupported: O3_CPU_CODE is 'avx', model 'scale' has code for x86-64-v4 and x86-64-v3"
run 0 "$O3_RUN" scale.so --json
out_has '"target": "x86-64"'
# Stages that there are once for each kind have no one module.
run 1 "$O3C" scale.mlir --target x86-64 --emit llvm -o x.mlir
err_is "o3c: error: target 'x86-64' makes code for x86-64-v4 and x86-64-v3: choose one of them to start from or stop at stage 'llvm'"
run 1 "$O3C" scale.mlir --target x86-64 -o x.ll
err_has "choose one of them"
run 1 "$O3C" dump/08-plan_x86_64_v3.mlir --target x86-64 --start-from loops
err_has "choose one of them to start from or stop at stage 'loops'"
run 0 "$O3C" scale.mlir -O2 -q --target x86-64 --emit fuse -o x.mlir
