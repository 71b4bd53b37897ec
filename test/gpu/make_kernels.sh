#!/bin/sh
# make_kernels.sh BUILD [--checked]: the fast kernels of kernel_cases.py into BUILD/gpu-kernels, assembled where ptxas is.
# With --checked also those of older cards, into folders of their names, as PTX.
set -e
build=$1 out=$1/gpu-kernels cases=$(dirname "$0")/kernel_cases.py
rm -rf "$out" && mkdir -p "$out"
python3 "$cases" $2 >"$out/cases.mlir"
"$build/bin/gpu_kernels" hopper "$out/cases.mlir" "$out"
if [ "$2" = --checked ]; then
  for card in ampere turing volta; do
    mkdir "$out/$card"
    python3 "$cases" "--$card" >"$out/$card/cases.mlir"
    "$build/bin/gpu_kernels" "$card" "$out/$card/cases.mlir" "$out/$card"
  done
fi
command -v ptxas >/dev/null || exit 0
for ptx in "$out"/*.ptx; do ptxas -arch=sm_90a "$ptx" -o "${ptx%.ptx}.cubin"; done
