#!/bin/sh
# make_kernels.sh BUILD [--checked]: the fast kernels of kernel_cases.py into BUILD/gpu-kernels, assembled where ptxas is.
set -e
build=$1 out=$1/gpu-kernels
rm -rf "$out" && mkdir -p "$out"
python3 "$(dirname "$0")/kernel_cases.py" $2 >"$out/cases.mlir"
"$build/bin/gpu_kernels" hopper "$out/cases.mlir" "$out"
command -v ptxas >/dev/null || exit 0
for ptx in "$out"/*.ptx; do ptxas -arch=sm_90a "$ptx" -o "${ptx%.ptx}.cubin"; done
