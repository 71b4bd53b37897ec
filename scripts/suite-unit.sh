#!/bin/bash
# Runs the unit tests of a build folder and counts single tests: suite-unit.sh <suite name> <folder>
set -u
name=$1 folder=$2
export CMOCKA_MESSAGE_OUTPUT=TAP
ctest --test-dir "$folder" -V -j2 --no-tests=error 2>&1 | awk -v name="$name" '
  { print; fflush() }
  # "12: ok 3 - what": one test of program 12.
  /^[0-9]+: (not )?ok [0-9]+ .*# SKIP/ { ++skipped; next }
  /^[0-9]+: ok [0-9]+ /                { ++passed; next }
  /^[0-9]+: not ok [0-9]+ /            { ++failed; ++of[$1]; next }
  # " 3/10 Test #12: test_map ....   Passed": a program that failed without a failed test has crashed.
  / Test +#[0-9]+: / {
    match($0, /#[0-9]+:/)
    number = substr($0, RSTART + 1, RLENGTH - 1)
    if ($0 !~ / Passed / && !of[number]) ++failed
  }
  END { printf "%s: %d passed, %d failed, %d skipped\n", name, passed, failed, skipped; exit failed > 0 }'
