#!/bin/bash
# Compiles the block-sparse digits network at every opt level, lets a small C program read the whole test set
# with each library, and shows how they compare. Needs the build (make demo does it) and a C compiler.
set -eu
cd "$(dirname "$0")/.."
build=${O3_BUILD:-build}
o3c=$build/bin/o3c
model=models/digits/digits_sparse.onnx
images=models/digits/test_images.npy labels=models/digits/test_labels.npy
work=$build/demo
[ -x "$o3c" ] || { echo "demo: $o3c is missing: run make" >&2; exit 1; }
mkdir -p "$work"

declare -A milliseconds report
for level in 0 1 2 3; do
  library=$work/digits_O$level.so
  rm -f "$library"
  echo "o3c $model -O$level -o $library"
  milliseconds[$level]=$("$o3c" "$model" -O$level -q --timing -o "$library" 2>&1 | awk '$1 == "all" { print $2 }')
  [ -s "$library" ] || { "$o3c" "$model" -O$level -o "$library"; exit 1; }
  "${CC:-cc}" -O2 -Iinclude examples/digits_demo.c "$library" -o "$work/digits_O$level"
done

echo
"$work/digits_O1" "$images" "$labels" --show | sed '$d'
echo "(the digits as the network sees them, and below what it says they are)"
echo
printf '%-8s %12s %14s %12s %18s\n' level compile "time an image" library "read correctly"
for level in 0 1 2 3; do
  report[$level]=$("$work/digits_O$level" "$images" "$labels")
  read -r correct total microseconds <<<"${report[$level]}"
  printf '%-8s %9.0f ms %11.1f us %9d kB %9d of %d, %s\n' "O$level" "${milliseconds[$level]}" "$microseconds" \
    $(($(stat -c %s "$work/digits_O$level.so") / 1000)) "$correct" "$total" \
    "$(awk "BEGIN { printf \"%.1f%%\", 100 * $correct / $total }")"
done
echo
echo "The libraries and programs are in $work."
