# RUN: %python %s > %t && o3-opt --fuse --level 2 %t | FileCheck %s
"""A group is cut back at a result that is an output, too: what was behind it no longer counts as read, and the
producers of all operands are taken in."""

# CHECK-LABEL: func.func @main
# CHECK-NOT: _elementwise_
# CHECK: call @k{{[01]}}_rows_
# CHECK-NEXT: call @k{{[01]}}_elementwise_
# CHECK-NEXT: return

COUNT, CUT = 25, 6
ROW = "tensor<8xf32>"
names = ", ".join(f"%b{i}: {ROW}" for i in range(COUNT))
print(f"""#id = affine_map<(i) -> (i)>
module {{
  func.func @main(%x: tensor<8x16xf32>, {names}) -> ({ROW}, {ROW}) {{
    %empty = tensor.empty() : {ROW}
    %zero = arith.constant 0.0 : f32
    %fill = linalg.generic {{indexing_maps = [#id], iterator_types = ["parallel"]}} outs(%empty : {ROW}) {{
      ^bb0(%c: f32):
        linalg.yield %zero : f32
    }} -> {ROW}""")


def elementwise(result, op, *inputs):
    print(f"""    %{result} = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
        ins(%{inputs[0]}, %{inputs[1]} : {ROW}, {ROW}) outs(%empty : {ROW}) {{
      ^bb0(%a: f32, %b: f32, %c: f32):
        %s = {op} %a, %b : f32
        linalg.yield %s : f32
    }} -> {ROW}""")


for i in range(CUT):
    elementwise(f"p{i}", "arith.mulf", f"b{i}", f"b{i + CUT}")
print(f"""    %s0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
        iterator_types = ["parallel", "reduction"]}} ins(%x : tensor<8x16xf32>) outs(%fill : {ROW}) {{
      ^bb0(%a: f32, %c: f32):
        %s = arith.addf %c, %a : f32
        linalg.yield %s : f32
    }} -> {ROW}""")
for i in range(COUNT):
    elementwise(f"s{i + 1}", "arith.addf", f"s{i}", f"p{i}" if i < CUT else f"b{i}")
print(f"    return %s{CUT}, %s{COUNT} : {ROW}, {ROW}\n  }}\n}}")
