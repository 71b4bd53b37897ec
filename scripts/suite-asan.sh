#!/bin/bash
# Builds with clang and its address and undefined-behaviour sanitizers, then runs unit and lit tests on that.
# The build doubles as the check that clang takes the code without warnings.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=$O3_BUILD/asan
scripts/build-sanitized.sh || {
  echo "asan: 0 passed, 1 failed, 0 skipped"
  exit 1
}
logs=()
for part in unit lit; do
  logs+=("$O3_LOG_DIR/asan-$part.log")
done
scripts/suite-unit.sh unit "$folder" >"${logs[0]}" 2>&1
scripts/suite-lit.py lit "$folder" >"${logs[1]}" 2>&1
for log in "${logs[@]}"; do
  grep -E '^(FAIL|TIMEOUT|UNRESOLVED|XPASS): |: not ok |\*\*\*|^lit: ' "$log"
  grep -B2 -A25 -E 'ERROR: (Address|Leak)Sanitizer|runtime error:' "$log" | head -n 80
done
cat "${logs[@]}" | awk '
  /^(unit|lit): [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { ++parts; passed += $2; failed += $4; skipped += $6 }
  END {
    if (parts < 2) { print "a part has no closing line"; ++failed }
    printf "asan: %d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
  }'
