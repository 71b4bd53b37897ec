#!/bin/bash
# Builds the fuzzers of this folder (clang, libFuzzer, sanitizers) and runs each for FUZZ_SECONDS (60) from its
# seeds in corpus/<fuzzer>; O3_SEED sets where their random numbers begin, else the clock does. What breaks one is
# kept in the build folder and named. Names as arguments run those.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=${O3_BUILD:-build}/asan
seconds=${FUZZ_SECONDS:-60}
passed=0 failed=0 skipped=0
finish() {
  echo "fuzz: $passed passed, $failed failed, $skipped skipped"
  exit $((failed > 0))
}

fuzzers=("$@")
if [ $# = 0 ]; then
  for source in test/fuzz/fuzz_*.c; do fuzzers+=("$(basename "$source" .c)"); done
fi
if ! scripts/build-sanitized.sh "${fuzzers[@]}"; then
  failed=${#fuzzers[@]}
  finish
fi

# LLVM's libraries are built without the sanitizers: containers that they hand over are not annotated, and what
# they keep to the end of the process is not ours.
export ASAN_OPTIONS=detect_container_overflow=0
export LSAN_OPTIONS=suppressions=$PWD/test/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1
for fuzzer in "${fuzzers[@]}"; do
  found=$folder/$fuzzer.found
  mkdir -p "$found/corpus"
  seeds=()
  [ -d "test/fuzz/corpus/$fuzzer" ] && seeds=("test/fuzz/corpus/$fuzzer")
  echo "fuzz: $fuzzer for $seconds s"
  if "$folder/bin/$fuzzer" -max_total_time="$seconds" -seed="${O3_SEED:-0}" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
      -artifact_prefix="$found/" "$found/corpus" "${seeds[@]}" >"$found/log" 2>&1; then
    ((++passed))
    grep -E 'number_of_executed_units|new_units_added|peak_rss_mb' "$found/log"
  else
    ((++failed))
    tail -n 40 "$found/log"
    echo "fuzz: $fuzzer failed; its input is in $found"
  fi
done
finish
