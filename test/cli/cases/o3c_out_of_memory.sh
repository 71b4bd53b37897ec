# Allocations of a whole compilation fail in turn, closer together at the start: an error each time, never a
# crash, and nothing is left.
cat >exp.mlir <<'M'
func.func @main(%x: tensor<4xf32> {o3.name = "x"}) -> (tensor<4xf32> {o3.name = "y"}) {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
M
mkdir out
RUN_LINE="O3_FAULT_ALLOC=n o3c"
n=1 failed=0 passed=0
# A text for an error that does not come may fail without harm: the end is where three compilations pass.
while [ $passed -lt 3 ]; do
  if O3_FAULT_ALLOC=$n "$O3C" exp.mlir -O0 -q -o out/exp.so >"$CASE_TMP/stdout" 2>"$CASE_TMP/stderr"; then
    passed=$((passed + 1))
    rm out/exp.so
  else
    failed=$((failed + 1)) passed=0
    grep -q '^o3c: error: .*out of memory' "$CASE_TMP/stderr" || fail "no clear error at allocation $n"
    [ "$(wc -l <"$CASE_TMP/stderr")" = 1 ] || fail "more than one line at allocation $n"
  fi
  [ -z "$(ls -A out)" ] || fail "something is left at allocation $n: $(ls -A out)"
  n=$((n + 1 + n / 12))
done
[ $failed -gt 10 ] || fail "only $failed allocations failed"
