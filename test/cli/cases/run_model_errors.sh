model_error() {
  local message=$1
  shift
  run 1 "$O3_RUN" "$@"
  out_is ""
  err_is "o3-run: error: $message"
}
model_error "not found: cannot load the model: ./none.so: cannot open shared object file: No such file or directory" none.so
echo text >text.so
model_error "not found: cannot load the model: ./text.so: file too short" text.so
fake net.so -DFAKE_PREFIX=net
model_error "invalid model: 'net.so' has no function 'o3_model': it is no compiled model, or one with another --symbol-prefix" \
  net.so
run 0 "$O3_RUN" net.so --symbol-prefix net
fake abi.so -DFAKE_ABI=7
model_error "invalid model: 'abi.so' has version 7 of the model interface, this o3-run reads 3" abi.so
fake feature.so -DFAKE_NO_SESSION
model_error "unsupported: the model needs the CPU feature avx99, which this machine lacks" feature.so --random
run 0 "$O3_RUN" feature.so
fake lost.so -DFAKE_LOST
model_error "invalid model: output 'yes' came without data" lost.so --random
fake flaky.so -DFAKE_FLAKY
run 0 "$O3_RUN" flaky.so --random
model_error "invalid model: run 2 gives other bits than the first in output 'y/1': --repeat expects the same" flaky.so \
  --random --repeat 3
