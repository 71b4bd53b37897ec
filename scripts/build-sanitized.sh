#!/bin/bash
# Builds with clang, its address and undefined-behaviour sanitizers and libFuzzer's counters into $O3_BUILD/asan,
# which the suites asan and fuzz share: one builds, the other waits for it. Names of targets as arguments build
# those. Shows the build's output only when it fails.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=${O3_BUILD:-build}/asan log=${O3_BUILD:-build}/asan/build.log
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
{ cmake -G Ninja -S . -B "$folder" -DCMAKE_C_COMPILER=clang-22 -DO3_SANITIZE=ON -DO3_FUZZ=ON &&
  ninja -C "$folder" -j "$(nproc)" "$@"; } >"$log" 2>&1 9>&- && exit
tail -n 40 "$log"
exit 1
