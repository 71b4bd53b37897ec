# Failures: one line, exit status 1, and nothing is left.
error() {
  local message=$1
  shift
  run 1 "$O3C" "$@"
  out_is ""
  err_is "o3c: error: $message"
}
printf 'func.func @main() {\n  return\n}\n' >m.mlir
mkdir folder
error "model 'none.onnx' does not exist" none.onnx
error "model 'net.pt': its ending must be .onnx or .mlir" net.pt
error "sparse format 'blocks' is unknown; supported: auto, dense, csr, bsr-RxC, nm-N:M, hybrid, hybrid-RxC" m.mlir --sparse-format blocks
error "symbol prefix 'my-net' is no C identifier (letters, digits and _, no digit first)" m.mlir \
  --symbol-prefix my-net
error "output 'm.mlir' is the model itself" m.mlir -o m.mlir
error "output 'm.exe': its ending must be .so, .a, .o, .ll, .ptx or .mlir, which says what is written" m.mlir -o m.exe
error "output 'no/m.so': cannot write to the folder 'no/': No such file or directory" m.mlir -o no/m.so
error "dimension 'N' is given twice" m.mlir --dim N=3 --dim M=1 --dim N=4
error "the shape of input 'x' is given twice" m.mlir --shape x:3 --shape x:4
error "the value of input 'x' is given twice" m.mlir --value x=3 --value x=4
mv folder folder.so
error "cannot write 'folder.so': it is a directory, a regular file is needed" m.mlir -o folder.so
for target in pascal sm_60 cuda; do
  run 1 "$O3C" m.mlir --target $target
  err_has "$target"
  err_has "x86-64-v3"
  [ "$(wc -l <"$CASE_TMP/stderr")" = 1 ] || fail "more than one line"
done
if [ "$(id -u)" != 0 ]; then
  mkdir closed
  chmod 555 closed
  error "output 'closed/m.so': cannot write to the folder 'closed/': Permission denied" m.mlir -o closed/m.so
fi
printf 'not a model' >bad.onnx
run 1 "$O3C" bad.onnx
err_has "bad.onnx"
printf 'func.func @main() {\n  oops\n}\n' >bad.mlir
error "bad.mlir: line 2, column 3: custom op 'oops' is unknown (tried 'func.oops' as well)" bad.mlir
# What is not asked for is not there.
[ "$(ls -A | sort | tr '\n' ' ')" = "bad.mlir bad.onnx folder.so m.mlir " ] ||
  [ "$(ls -A | sort | tr '\n' ' ')" = "bad.mlir bad.onnx closed folder.so m.mlir " ] || ls -A
