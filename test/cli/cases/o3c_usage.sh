usage() {
  local message=$1
  shift
  run 2 "$O3C" "$@"
  out_is ""
  err_is "o3c: error: $message; o3c --help tells more"
}
usage "no model is given"
usage "there are two models, 'a.onnx' and 'b.onnx': one is compiled" a.onnx b.onnx
usage "unknown or ambiguous option '--foo'" --foo m.onnx
usage "unknown option '-Z'" -Z
usage "unknown option with byte 0xc3" m.onnx -é
usage "option '--output' needs an argument" m.onnx --output
usage "option '-o' needs an argument" m.onnx -o
usage "--output is '', FILE is needed" m.onnx -o ''
usage "--opt-level is '4', one of 0, 1, 2, 3 is needed" m.onnx -O4
usage "--opt-level is 'fast', one of 0, 1, 2, 3 is needed" m.onnx --opt-level fast
usage "--threads is 'many', a number up to 1024 is needed" m.onnx -j many
usage "dimension 'N' is not of the form NAME=SIZE" m.onnx --dim N
usage "value 'x=-1' is not of the form NAME=NUMBER" m.onnx --value x=-1
usage "shape 'x:1x' is not of the form NAME:1x3x224x224" m.onnx --shape x:1x
usage "--json and --output - both want stdout" m.onnx --json -o -
usage "--json and --report - both want stdout" m.onnx --json --report -
usage "--print-hardware takes no model, 'm.onnx' is given" m.onnx --print-hardware
for option in --help --version --print-hardware; do
  run 1 bash -c '"$O3C" "$0" >/dev/full' $option
  err_is "o3c: error: cannot write to stdout"
done
run 0 "$O3C" --version
out_has "o3c 0."
run 0 "$O3C" --help
err_is ""
for part in "usage: o3c" "--sparse-format" "x86-64-v3" "bufferize" "Examples:"; do out_has "$part"; done
awk 'length > 100 { print "--help: longer than 100: " $0 }' "$CASE_TMP/stdout"
