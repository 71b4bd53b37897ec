# RUN: %python %s elementwise > %t.alone && o3-opt --fuse %t.alone | FileCheck %s
# RUN: %python %s product > %t.behind && o3-opt --fuse %t.behind | FileCheck %s
"""A hundred sums of different operands: a kernel takes as many as an op may have, and another one goes on."""
import sys

# CHECK-LABEL: func.func @main
# CHECK-COUNT-4: call @k{{[0-3]}}_
# CHECK-NEXT: return

COUNT = 100
product = sys.argv[1] == "product"
names = ", ".join(f"%b{i}: tensor<8x16xf32>" for i in range(COUNT))
print(f"""#id = affine_map<(d0, d1) -> (d0, d1)>
module {{
  func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, {names}) -> tensor<8x16xf32> {{
    %empty = tensor.empty() : tensor<8x16xf32>""")
if product:
    print("""    %zero = arith.constant 0.0 : f32
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
    %s0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
        affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%fill : tensor<8x16xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %c, %m : f32
        linalg.yield %s : f32
    } -> tensor<8x16xf32>""")
for i in range(COUNT):
    before = f"s{i}" if i or product else "x"
    print(f"""    %s{i + 1} = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}}
        ins(%{before}, %b{i} : tensor<8x16xf32>, tensor<8x16xf32>) outs(%empty : tensor<8x16xf32>) {{
      ^bb0(%a: f32, %b: f32, %c: f32):
        %s = arith.addf %a, %b : f32
        linalg.yield %s : f32
    }} -> tensor<8x16xf32>""")
print(f"    return %s{COUNT} : tensor<8x16xf32>\n  }}\n}}")
