#!/bin/sh
# sanitize.sh FOLDER: a network with every family of kernels of the card, packed into FOLDER (family_network.py pack FOLDER), under
# NVIDIA's compute-sanitizer: accesses out of bounds or misaligned, races in shared memory, and barriers that not all
# threads reach. One line a tool; fails when a tool finds anything. initcheck is of no use: it does not see what the
# tensor copy engine writes.
folder=$1 here=$(dirname "$0") failed=0
command -v compute-sanitizer >/dev/null || { echo "SKIP: compute-sanitizer is not in PATH"; exit 0; }
for tool in memcheck racecheck synccheck; do
  log=$folder/$tool.log
  if compute-sanitizer --tool $tool --target-processes all --error-exitcode 9 \
    python3 "$here/family_network.py" run "$folder" >"$log" 2>&1; then
    echo "sanitize: $tool found nothing"
  else
    failed=1
    echo "sanitize: $tool: see $log"
    grep -E '=========|FAIL|rror' "$log" | head -40
  fi
done
exit $failed
