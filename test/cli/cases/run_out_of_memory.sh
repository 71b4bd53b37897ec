# Each allocation of a whole run fails in turn: an error each time, never a crash or a wrong success.
fake model.so
tensor in.npz x float32 2,3 0 1 2 3 4 5 -- mask bool 2 1 0 -- ids/0 int32 2 40 2
tensor y.npy float32 2,3 1 2 3 4 5 6
oom() { O3_FAULT_ALLOC=$1 "$O3_RUN" model.so -i in.npz -e y.npy --save "$2" --bench 2 --warmup 1 --json --repeat 2; }
for way in out out.npz; do
  n=1
  until oom $n "$way" >"$CASE_TMP/stdout" 2>"$CASE_TMP/stderr"; do
    RUN_LINE="O3_FAULT_ALLOC=$n, --save $way"
    grep -qE '^o3-run: error: out of memory' "$CASE_TMP/stderr" || fail "no clear error"
    [ "$(wc -l <"$CASE_TMP/stderr")" = 1 ] || fail "more than one line"
    out_is ""
    n=$((n + 1))
  done
  [ $n -gt 10 ] || fail "only $n allocations failed"
done
