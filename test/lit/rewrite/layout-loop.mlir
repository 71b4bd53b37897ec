// RUN: o3-opt --layout --simplify %s | FileCheck %s
// Of what is in a loop products with constant matrices change, where the rows are open or many. A matrix that the
// iteration's number chooses is no constant.

#batch = affine_map<()[s0, s1] -> (s0, 20)>
#place = affine_map<()[s0, s1] -> (s1)>

module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<?x20xf32> {o3.shape = affine_map<()[s0] -> (s0, 20)>}, %few: tensor<5x20xf32>)
      -> (tensor<?x20xf32>, tensor<5x20xf32>) attributes {o3.symbols = ["n", "i"], o3.guards = []} {
    %m = "o3.constant"() {value = dense<1.0> : tensor<20x20xf32>} : () -> tensor<20x20xf32>
    %all = "o3.constant"() {value = dense<1.0> : tensor<80x20xf32>} : () -> tensor<80x20xf32>
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    // CHECK: scf.for
    %r:2 = scf.for %i = %zero to %four step %one iter_args(%v = %x, %w = %few) -> (tensor<?x20xf32>, tensor<5x20xf32>) {
      // CHECK: %[[A:.*]] = "o3.matmul_packed"({{.*}}tensor<?x20xf32>, tensor<2x20x16xf32>) -> tensor<?x20xf32>
      %a = "o3.matmul"(%v, %m) {o3.shape = [#batch]} : (tensor<?x20xf32>, tensor<20x20xf32>) -> tensor<?x20xf32>
      // CHECK: %[[PART:.*]] = "o3.slice"
      %part = "o3.slice"(%all) {axes = array<i64: 0>, starts = #place, steps = array<i64: 1>}
          : (tensor<80x20xf32>) -> tensor<20x20xf32>
      // CHECK: "o3.matmul"(%[[A]], %[[PART]])
      %b = "o3.matmul"(%a, %part) {o3.shape = [#batch]} : (tensor<?x20xf32>, tensor<20x20xf32>) -> tensor<?x20xf32>
      // CHECK: "o3.matmul"({{.*}}tensor<5x20xf32>
      %c = "o3.matmul"(%w, %m) : (tensor<5x20xf32>, tensor<20x20xf32>) -> tensor<5x20xf32>
      scf.yield %b, %c : tensor<?x20xf32>, tensor<5x20xf32>
    }
    return %r#0, %r#1 : tensor<?x20xf32>, tensor<5x20xf32>
  }
}
