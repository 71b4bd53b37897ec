usage() {
  local message=$1
  shift
  run 2 "$O3_PRUNE" "$@"
  out_is ""
  err_is "o3-prune: error: $message; o3-prune --help tells more"
}
usage "no model is given" --block 16x16 -r 0.5
usage "there are two models, 'a' and 'b': one is pruned" a b -u -r 0.5
usage "one of --block, --nm and --unstructured is needed" a
usage "--ratio is needed" a -u
usage "--block, --nm and --unstructured exclude each other: give one, once" a -u --nm 2:4
usage "--nm says how much is set to zero: neither --ratio nor --global goes with it" a --nm 2:4 -r 0.5
usage "--block is '16', RxC, such as 16x16, is needed" a --block 16
usage "--block is '0x4', RxC, such as 16x16, is needed" a --block 0x4
usage "--nm is '4:2', N:M with N below M, such as 2:4, is needed" a --nm 4:2
usage "--ratio is '60', a number from 0 to 1, such as 0.6, is needed" a -u --ratio 60
usage "--seed is '-1', a whole number is needed" a --seed -1
usage "--ops is 'conv,lstm', a list of conv, gemm and matmul is needed" a --ops conv,lstm
usage "option '--only' needs an argument" a --only
usage "unknown option '-Z'" -Z
run 0 "$O3_PRUNE" --version
out_has "o3-prune 0."
run 0 "$O3_PRUNE" --help
out_has "usage: o3-prune"
