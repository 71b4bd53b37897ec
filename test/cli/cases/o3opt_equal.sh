cat >net.mlir <<'M'
func.func @main(%x: tensor<2x3xf32> {o3.name = "x"}) -> (tensor<2x3xf32> {o3.name = "y"}) {
  %a = "o3.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "o3.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = "o3.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
M
run 0 "$O3_OPT" net.mlir --simplify --check-equal
err_is ""
run 0 "$O3_OPT" net.mlir --simplify --check-equal=7
sed 's/2x3xf32/?x3xf32/g' net.mlir >dynamic.mlir
run 1 "$O3_OPT" dynamic.mlir --check-equal
err_has "modules are compared with static sizes"
run 2 "$O3_OPT" net.mlir --check-equal=x
err_has "--check-equal is 'x', a whole number is needed"
printf 'func.func @other() {\n  return\n}\n' >other.mlir
run 1 "$O3_OPT" other.mlir --check-equal
err_has "the module has no function @main"
# Zero times infinity is NaN, which the pass does not heed.
cat >infinite.mlir <<'M'
func.func @main(%x: tensor<1x2xf32> {o3.name = "x"}) -> (tensor<1x1xf32> {o3.name = "y"}) {
  %w = "o3.constant"() {value = dense<[[1.0, 0.0], [2.0, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %v = "o3.constant"() {value = dense<[[3.0], [0x7F800000]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %h = "o3.matmul"(%x, %w) : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  %y = "o3.matmul"(%h, %v) : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
M
run 1 "$O3_OPT" infinite.mlir --dead-channels --check-equal
out_is ""
err_has "o3-opt: error: internal error: result 0 differs in 1 of 1 elements; the worst, 0, is "
