run 1 "$O3_PRUNE" none.onnx -u -r 0.5 -o out.onnx
err_is "o3-prune: error: not found: cannot open 'none.onnx': No such file or directory"
printf 'no model' >bad.onnx
run 1 "$O3_PRUNE" bad.onnx -u -r 0.5
err_has "'bad.onnx' is not an ONNX model"
python3 -c 'import numpy, onnx' 2>/dev/null || skip "no NumPy and onnx"
python3 - <<'P'
import numpy as np
import onnx
from onnx import helper, numpy_helper
w = numpy_helper.from_array(np.arange(1, 65, dtype=np.float32).reshape(8, 8), "w")
x, y = (helper.make_tensor_value_info(n, 1, ["N", 8]) for n in "xy")
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")], "g", [x], [y], [w])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "net.onnx")
onnx.save(model, "ext.onnx", save_as_external_data=True, location="ext2.onnx.data", size_threshold=0)
P
cp net.onnx saved.onnx
run 1 "$O3_PRUNE" net.onnx -u -r 0.5 -o net.onnx
err_is "o3-prune: error: invalid argument: output 'net.onnx' is 'net.onnx', which is read"
ln -s net.onnx link.onnx
run 1 "$O3_PRUNE" net.onnx -u -r 0.5 -o link.onnx
err_is "o3-prune: error: invalid argument: output 'link.onnx' is 'net.onnx', which is read"
run 1 "$O3_PRUNE" ext.onnx -u -r 0.5 -o ext2.onnx
err_is "o3-prune: error: invalid argument: output 'ext2.onnx.data' is './ext2.onnx.data', which is read"
[ ! -e ext2.onnx ] || fail "ext2.onnx was written"
run 1 "$O3_PRUNE" net.onnx -u -r 0.5 --skip 'head*'
err_is "o3-prune: error: invalid argument: 'net.onnx': --skip 'head*' matches no layer"
run 1 "$O3_PRUNE" net.onnx -u -r 0.5 --ops conv
err_is "o3-prune: error: invalid argument: 'net.onnx': there is no layer to prune (1 have constant weights, all are left out)"
run 1 "$O3_PRUNE" net.onnx -u -r 0.5 -o no/such.onnx
err_has "cannot write 'no/such.onnx': No such file or directory"
run 1 bash -c '"$O3_PRUNE" net.onnx -u -r 0.5 >/dev/full'
err_is "o3-prune: error: input/output error: cannot write to stdout"
cmp net.onnx saved.onnx
run 0 "$O3_PRUNE" net.onnx --block 4x4 -r 0.25
out_has "fc                                   MatMul  8x8                       4          1    0.0 % ->  25.0 %"
out_has "fine-tune"
out_has "Nothing is written without --output."
run 0 "$O3_PRUNE" net.onnx --block 4x4 -r 0.25 --json -o out.onnx
out_is '{"pattern":"4x4 blocks","output":"out.onnx","layers":[{"node":"fc","op":"MatMul","weight":"w","shape":[8,8],"elements":64,"units":4,"dropped":1,"zeros_before":0,"zeros_after":16}],"total":{"elements":64,"units":4,"dropped":1,"zeros_before":0,"zeros_after":16},"note":"accuracy has suffered: fine-tune the model before it is used"}'
# Pruned for good: what is zero stays zero.
run 0 "$O3_PRUNE" out.onnx --block 4x4 -r 0.25 -o again.onnx
cmp out.onnx again.onnx
[ -z "$(ls | grep tmp || true)" ] || ls
