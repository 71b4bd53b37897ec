# Every kind of output of one model, used the way its users would.
cat >add.mlir <<'M'
func.func @main(%x: tensor<?x3xf32> {o3.name = "x", o3.shape = affine_map<()[s0] -> (s0, 3)>})
    -> (tensor<?x3xf32> {o3.name = "y", o3.shape = affine_map<()[s0] -> (s0, 3)>})
    attributes {o3.symbols = [{name = "N"}]} {
  %w = arith.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<?x3xf32>, tensor<1x3xf32>) outs(%e : tensor<?x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
M
cat >use.c <<'M'
#include HEADER
#include <stdio.h>
static int use(const o3_model_t *model) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  o3_tensor_t in = {.data = data, .dtype = O3_FLOAT32, .rank = 2, .shape = {2, 3}}, out = {0};
  o3_session_t *session;
  if (o3_session_create(model, NULL, &session) != O3_OK) return 1;
  if (o3_session_run(session, &in, 1, &out, 1) != O3_OK) return 2;
  for (int i = 0; i < 6; ++i) printf("%g ", ((float *)out.data)[i]);
  o3_session_destroy(session);
  return 0;
}
int main(void) { return MODELS; }
M
answer="2 4 6 5 7 9 "
compile() { run 0 "$O3C" add.mlir -O0 -q "$@"; out_is ""; err_is ""; }
cc=("${CC:-cc}" -std=c17 -Wall -Wextra -Werror -I"$O3_ROOT/include" -I. use.c)

compile
[ -s add.so ] || fail "no add.so"
"${cc[@]}" -DHEADER='<o3/model.h>' -DMODELS='use(o3_model())' ./add.so -o user
run 0 ./user
out_is "$answer"

compile -o net.a --symbol-prefix net
"${cc[@]}" -DHEADER='"net.h"' -DMODELS='use(net_model())' net.a -o user
run 0 ./user
out_is "$answer"

# Two models and their runtimes in one program.
compile -o other.o --symbol-prefix other
printf '#include "net.h"\nO3_DECLARE_MODEL(other);\n' >both.h
"${cc[@]}" -DHEADER='"both.h"' -DMODELS='use(net_model()) || use(other_model())' net.a other.o -o user
run 0 ./user
out_is "$answer$answer"

compile -o add.ll
grep -q '^define.*@o3m_run' add.ll || fail "add.ll has no o3m_run"
compile --emit bufferize -o buffers.mlir
grep -q 'memref<' buffers.mlir || fail "buffers.mlir has no memref"
run 1 "$O3C" add.mlir --emit bufferize
err_is "o3c: error: output 'add.mlir' is the model itself"
run 0 "$O3C" add.mlir -O0 --emit lower -o -
out_has "linalg.generic"

# The same bytes whatever the output is called, wherever it is made.
mkdir -p sub
TMPDIR=$PWD/sub compile -o sub/other.so
cmp add.so sub/other.so
compile -j 1 -o one.so
cmp add.so one.so
[ -z "$(ls -A | grep '^\.o3c' || true)" ] || ls -A
# A constant without elements is no weight, though code for cards asks where the weights are.
cat >none.mlir <<'M'
module attributes {o3.stage = "rewrite"} {
  func.func @main() -> (tensor<0x3xf32> {o3.element = f32, o3.name = "y", o3.shape = affine_map<() -> (0, 3)>})
      attributes {o3.guards = [], o3.symbols = []} {
    %y = "o3.constant"() {value = dense<0.0> : tensor<0x3xf32>} : () -> tensor<0x3xf32>
    return %y : tensor<0x3xf32>
  }
}
M
for target in cpu hopper; do
  run 0 "$O3C" none.mlir -q --start-from rewrite --target $target -o none.so
  run 0 "$O3_RUN" none.so
  out_has "y: float32 [0,3]"
done
