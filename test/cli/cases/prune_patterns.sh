python3 -c 'import numpy, onnx' 2>/dev/null || skip "no NumPy and onnx"
run 0 python3 "$O3_ROOT/test/cli/check_pruned.py" "$O3_PRUNE"
out_is ""
err_is ""
