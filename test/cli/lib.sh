# For the cases: sourced before each. A case prints nothing when it passes; what it prints tells why it failed.
#
#     run 1 "$O3_RUN" missing.so          # runs, wants exit status 1; stdout and stderr go to files
#     err_is "o3-run: error: ..."         # the whole of stderr, exactly
#     out_is "..."; out_has "..."; err_has "..."
#     fake model.so -DFAKE_FLAKY          # builds fake_model.c
#     tensor x.npy float32 2,3 1 2 3 4 5 6
#     skip "reason"                       # ends the case, counted as skipped

run() {
  local want=$1 got=0
  shift
  RUN_LINE="$*"
  "$@" >"$CASE_TMP/stdout" 2>"$CASE_TMP/stderr" </dev/null || got=$?
  [ "$got" = "$want" ] || fail "exit status $got, $want expected"
}

fail() {
  echo "$1"
  echo "  command: $RUN_LINE"
  sed 's/^/  stdout: /' "$CASE_TMP/stdout" | head -30
  sed 's/^/  stderr: /' "$CASE_TMP/stderr" | head -30
  exit 1
}

is() { [ "$(cat "$CASE_TMP/$1")" = "$2" ] || fail "$1 is not as expected: $(diff <(echo "$2") "$CASE_TMP/$1")"; }
has() { grep -qF -- "$2" "$CASE_TMP/$1" || fail "$1 lacks: $2"; }
out_is() { is stdout "$1"; }
err_is() { is stderr "$1"; }
out_has() { has stdout "$1"; }
err_has() { has stderr "$1"; }

fake() {
  local file=$1
  shift
  ${CC:-cc} -std=c17 -Wall -Wextra -shared -fPIC -O1 -I"$O3_ROOT/include" "$@" -o "$file" "$O3_ROOT/test/cli/fake_model.c"
}

tensor() { python3 "$O3_ROOT/test/cli/make_tensor.py" "$@"; }

skip() {
  echo "skipped: $1"
  exit 77
}
