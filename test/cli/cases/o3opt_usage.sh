usage() {
  local message=$1
  shift
  run 2 "$O3_OPT" "$@"
  out_is ""
  err_is "o3-opt: error: $message; o3-opt --help tells more"
}
usage "no input is given; - is stdin"
usage "there are two inputs, 'a' and 'b': one is read" a b
usage "there is no option or pass --foo (--list-passes tells them)" --foo m.mlir
usage "option --pipeline needs an argument" m.mlir --pipeline
usage "--level is '9', one of 0, 1, 2, 3 is needed" m.mlir --level 9
usage "stage 'object' leaves no module to verify" m.mlir --verify-stage object
run 2 "$O3_OPT" m.mlir --target pascal
err_has "pascal"
run 0 "$O3_OPT" --version
out_has "o3-opt 0."
run 0 "$O3_OPT" --help
out_has "usage: o3-opt"
grep -oE -- '--[a-z-]+' "$CASE_TMP/stdout" | sort -u | grep -vxE -- '--(lower|normalize)' | while read -r option; do
  grep -qF -- "$(echo "$option" | sed 's/-/\\-/g')" "$O3_ROOT/docs/man/o3-opt.1" || echo "docs/man/o3-opt.1 lacks $option"
done
