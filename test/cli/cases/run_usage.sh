usage() {
  local message=$1
  shift
  run 2 "$O3_RUN" "$@"
  out_is ""
  err_is "o3-run: error: $message; o3-run --help tells more"
}
usage "no model is given"
usage "unknown or ambiguous option '--foo'" --foo
usage "unknown or ambiguous option '--in'" --in x
usage "unknown option '-Z'" -Z
usage "option '--input' needs an argument" m.so --input
usage "option '--json=2' takes no argument" --json=2
usage "--input is '', [NAME=]FILE is needed" m.so --input ''
usage "--bench is 'x', an integer from 1 to 2147483647 is needed" m.so --bench=x
usage "--repeat is '0', an integer from 1 to 2147483647 is needed" m.so --repeat 0
usage "--device is '-1', an integer from 0 to 2147483647 is needed" m.so --device -1
usage "--spin-us is '-2', an integer from -1 to 2147483647 is needed" m.so --spin-us -2
usage "--threads is '99999999999', an integer from 0 to 2147483647 is needed" m.so --threads 99999999999
usage "dimension 'N' is not of the form NAME=SIZE" m.so --dim N
usage "dimension 'N' is given twice" m.so --dim N=3 --dim M=2 --dim N=4
usage "--rtol is 'nan', a number of at least 0 is needed" m.so --rtol nan
usage "--int-range is '5:1', LOW:HIGH with LOW <= HIGH is needed" m.so --int-range 5:1
usage "'b.so' is one model too many: 'a.so' came before" a.so b.so
usage "--expect-dir is given 2 times and --inputs-dir 1 times: each goes with one" m.so --inputs-dir a --expect-dir a \
  --expect-dir b
usage "--save takes one set of inputs, 2 are given" m.so -t a -t b --save out
run 0 "$O3_RUN" --help
err_is ""
out_has "Usage: o3-run MODEL.so [options]"
run 0 "$O3_RUN" --version
grep -qE '^o3-run [0-9]+\.[0-9]+\.[0-9]+$' "$CASE_TMP/stdout" || fail "version"
run 1 bash -c '"$O3_RUN" --help >/dev/full'
err_is "o3-run: error: input/output error: cannot write to stdout"
