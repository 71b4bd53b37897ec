run 0 "$O3_OPT" --list-passes
for part in "normalize  normalize" "lower      lower" "bufferize" "llvm"; do out_has "$part"; done
run 0 "$O3_OPT" --dialect
out_has "irdl.dialect @o3"
out_has "irdl.operation @conv"
printf 'func.func @main() -> i32 {\n  %%a = arith.constant 1 : i32\n  %%b = arith.addi %%a, %%a : i32\n  return %%b : i32\n}\n' >m.mlir
run 0 "$O3_OPT" m.mlir --pipeline "builtin.module(canonicalize)" --verify-stage lower
out_has "arith.constant 2 : i32"
run 0 bash -c '"$O3_OPT" - <m.mlir'
out_has "arith.addi"
run 0 "$O3_OPT" m.mlir --locations
out_has 'loc("m.mlir":2:8)'
run 1 "$O3_OPT" m.mlir --verify-stage llvm
out_is ""
err_has "is not legal after stage llvm"
run 1 "$O3_OPT" m.mlir --pipeline "builtin.module(nope)"
err_has "nope"
run 1 "$O3_OPT" none.mlir
err_is "o3-opt: error: not found: cannot open 'none.mlir': No such file or directory"
