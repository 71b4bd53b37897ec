#!/bin/bash
# Runs every suite of suites.txt, as many at a time as there are cores (at most 4), and closes with
# "N passed, N failed". Fails when a test failed, a suite could not say how it went, or ran no test.
#   check.sh              everything
#   check.sh lint unit    those suites
# O3_SUITE_SECONDS (1200) bounds each suite.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${O3_BUILD:-build}
export O3_BUILD=$build
scripts/setup.sh || exit 1
mkdir -p "$build/logs"
export O3_BUILD=$(realpath "$build") O3_LOG_DIR=$(realpath "$build")/logs
llvm_bin=$("${LLVM_CONFIG:-llvm-config-22}" --bindir) || exit 1
export PATH=$O3_BUILD/bin:$O3_BUILD/venv/bin:$llvm_bin:$PATH

names=()
declare -A commands=()
while read -r name command; do
  [[ -z $name || $name == \#* ]] && continue
  commands[$name]=$command
  names+=("$name")
done <scripts/suites.txt
for name in "$@"; do
  [[ -v commands[$name] ]] || { echo "check: no suite '$name' in scripts/suites.txt" >&2; exit 1; }
done
[[ $# == 0 ]] || names=("$@")

passed=0 failed=0 skipped=0

# Sets used to the processor's seconds that all processes took that have ended so far.
used=0
cpu_time() {
  times >"$O3_LOG_DIR/times"
  used=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int(60 * ($1 + $3) + $2 + $4) }' "$O3_LOG_DIR/times")
}

# Reads a finished suite's log: its closing line gives the counts.
collect() {
  local name=$1 status=$2 seconds=$3 log=$O3_LOG_DIR/$1.log p=0 f=0 s=0 note= before=$used
  cpu_time
  local pattern="^$name: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped\$"
  if [[ $(grep -v '^$' "$log" | tail -n 1) =~ $pattern ]]; then
    p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
    if ((f == 0 && status != 0)); then f=1 note=", exit status $status"; fi
    if ((p + f + s == 0)); then f=1 note=", ran no test"; fi
  else
    f=1 note=", exit status $status without a closing line"
    ((status != 124)) || note=", stopped after ${O3_SUITE_SECONDS:-1200} s"
  fi
  ((passed += p, failed += f, skipped += s))
  local verdict=PASS
  if ((f > 0)); then
    verdict=FAIL
    echo "---- $name: the end of $log"
    tail -n 60 "$log"
    echo "----"
  fi
  printf '%s %-10s %5d passed %3d failed %3d skipped %4d s %4d s of a core%s\n' $verdict "$name" "$p" "$f" "$s" \
    "$seconds" $((used - before)) "$note"
}

# In a process group of its own (timeout makes one), so that a suite that hangs, or one whose check is
# interrupted, ends with all that it started.
run_suite() {
  exec timeout --kill-after=10 "${O3_SUITE_SECONDS:-1200}" bash -c "${commands[$1]}" \
    >"$O3_LOG_DIR/$1.log" 2>&1 </dev/null
}

echo "check: building in $build"
if ! scripts/build.sh "$build" >"$O3_LOG_DIR/build.log" 2>&1; then
  tail -n 60 "$O3_LOG_DIR/build.log"
  echo "FAIL build: see $O3_LOG_DIR/build.log"
  echo "0 passed, 1 failed"
  exit 1
fi

cpu_time
lanes=$(nproc)
((lanes <= 4)) || lanes=4
declare -A running=() started=()
trap 'kill "${!running[@]}" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
finish_one() {
  local pid status
  wait -n -p pid "${!running[@]}"
  status=$?
  collect "${running[$pid]}" $status $((SECONDS - started[$pid]))
  unset "running[$pid]"
}
for name in "${names[@]}"; do
  while ((${#running[@]} >= lanes)); do finish_one; done
  run_suite "$name" &
  running[$!]=$name
  started[$!]=$SECONDS
done
while ((${#running[@]} > 0)); do finish_one; done

((skipped == 0)) || echo "skipped: $skipped (the suites' logs in $O3_LOG_DIR say why)"
echo "$passed passed, $failed failed"
((passed > 0 && failed == 0))
