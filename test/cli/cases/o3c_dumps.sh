# Dumps of every stage, going on from each, and printing around passes.
model=$O3_ROOT/models/digits/digits_sparse.onnx
run 0 "$O3C" "$model" -q --dump-dir d -o whole.so
for file in 01-import.mlir 02-normalize.mlir 03-rewrite.mlir 04-lower.mlir 05-fuse.mlir 06-schedule.mlir 07-bufferize.mlir 08-plan.mlir \
  09-loops.mlir 10-llvm.mlir 11-object.o weights.o3w; do
  [ -s "d/$file" ] || fail "no d/$file"
done
answers() { run 0 "$O3_RUN" "$1" --random 7 --dim batch=3 --save "$1.out"; }
answers whole.so
# Folding constants again finds its names taken: other bytes, but the same answers.
from_before_folding() {
  run 0 "$O3C" -q --start-from "$1" "d/$2" -o again.so
  answers again.so
  cmp whole.so.out/logits.npy again.so.out/logits.npy || echo "started from $1"
}
from() {
  run 0 "$O3C" -q --start-from "$1" "d/$2" -o again.so
  cmp whole.so again.so || echo "started from $1"
}
from_before_folding normalize 01-import.mlir
from_before_folding rewrite 02-normalize.mlir
from lower 03-rewrite.mlir
from fuse 04-lower.mlir
from schedule 05-fuse.mlir
from bufferize 06-schedule.mlir
from plan 07-bufferize.mlir
from loops 08-plan.mlir
from llvm 09-loops.mlir
from object 10-llvm.mlir
# A dump may be gone on from in its own folder.
run 0 "$O3C" -q --start-from lower d/03-rewrite.mlir --dump-dir d -o again.so
cmp whole.so again.so
run 1 "$O3C" --start-from llvm d/03-rewrite.mlir -o again.so
err_has "o3c: error: 'd/03-rewrite.mlir' cannot start stage 'llvm': op '"

run 0 "$O3C" "$model" -q --stop-after rewrite --dump-dir e
[ "$(ls e | tr '\n' ' ')" = "01-import.mlir 02-normalize.mlir 03-rewrite.mlir weights.o3w " ] || ls e
[ ! -e digits_sparse.so ] || fail "an output that nobody asked for"

run 0 "$O3C" "$model" -q --print-ir-before=lower --print-ir-after=lower --stop-after lower --dump-dir e
[ "$(grep -c '^// ----- IR ' "$CASE_TMP/stderr")" = 2 ] || fail "lower is printed before and after"
err_has "// ----- IR before lower -----"
err_has "// ----- IR after lower -----"
run 1 "$O3C" "$model" --print-ir-after=nope
err_is "o3c: error: there is no pass 'nope' to print the module around; o3-opt --list-passes tells them"
