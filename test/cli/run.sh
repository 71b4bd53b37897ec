#!/usr/bin/env bash
# Runs the cases of the command-line tools: cases/*.sh, each in a folder of its own. A case passes when it
# exits with 0 and prints nothing; 77 is a skip. Ends with "cli: P passed, F failed, S skipped".
#
#     test/cli/run.sh [NAME...]     all cases, or those whose name begins with one of NAME
#
# Environment: O3_BUILD (default: build), or the tools one by one: O3C, O3_RUN, O3_OPT, O3_PRUNE; CC, CXX.
set -u
export O3_ROOT=$(cd "$(dirname "$0")/../.." && pwd)
build=${O3_BUILD:-$O3_ROOT/build}
export O3C=${O3C:-$build/bin/o3c} O3_RUN=${O3_RUN:-$build/bin/o3-run} O3_OPT=${O3_OPT:-$build/bin/o3-opt} \
  O3_PRUNE=${O3_PRUNE:-$build/bin/o3-prune}
export LC_ALL=C
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

wanted() {
  [ $# -gt 1 ] || return 0
  local name=$1 prefix
  shift
  for prefix; do [[ $name == "$prefix"* ]] && return 0; done
  return 1
}

for case in "$O3_ROOT"/test/cli/cases/*.sh; do
  name=$(basename "$case" .sh)
  wanted "$name" "$@" || continue
  mkdir -p "$scratch/$name/work" "$scratch/$name/tmp"
  log=$scratch/$name/log
  (
    cd "$scratch/$name/work" &&
      CASE_TMP=$scratch/$name/tmp timeout 120 bash -eu -c '. "$O3_ROOT/test/cli/lib.sh"; . "$1"' "$name" "$case"
  ) >"$log" 2>&1
  code=$?
  if [ $code = 0 ] && [ ! -s "$log" ]; then
    passed=$((passed + 1))
    echo "PASS cli/$name"
  elif [ $code = 77 ]; then
    skipped=$((skipped + 1))
    echo "SKIP cli/$name: $(cat "$log")"
  else
    failed=$((failed + 1))
    echo "FAIL cli/$name (exit status $code)"
    sed 's/^/  /' "$log"
  fi
  rm -rf "${scratch:?}/$name"
done

echo "cli: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
