# RUN: %python %s > %t.mlir && o3-opt --lower %t.mlir | FileCheck %s
"""The lowering takes any number of inputs, results and symbols: here more than a thousand of each."""

# CHECK-LABEL: func.func @main(%arg0: tensor<?x?x
# CHECK-SAME: %arg1174: tensor<2xf32>) -> (tensor<?x?x
# CHECK: return %arg0, {{.*}}, %arg1174 :
# CHECK-LABEL: func.func private @check(%arg0: index
# CHECK-SAME: %arg1124: index) -> i32
# CHECK: arith.cmpi eq, %arg0, %arg1124
OPEN, FIXED, RANK = 75, 1100, 15
symbols = [f"s{i}" for i in range(OPEN * RANK)]
for i in range(OPEN):
    print(f"#shape{i} = affine_map<()[{', '.join(symbols)}] -> ({', '.join(symbols[i * RANK:(i + 1) * RANK])})>")
print(f"#equal = affine_map<()[{', '.join(symbols)}] -> ({symbols[0]}, {symbols[-1]})>")
types = [f"tensor<{'?x' * RANK}f32>"] * OPEN + ["tensor<2xf32>"] * FIXED
notes = [f"{{o3.element = f32, o3.shape = #shape{i}}}" for i in range(OPEN)] + ["{o3.element = f32}"] * FIXED
names = [f"%x{i}" for i in range(len(types))]
inputs = ", ".join(f"{name}: {kind} {note}" for name, kind, note in zip(names, types, notes))
results = ", ".join(f"{kind} {note}" for kind, note in zip(types, notes))
listed = ", ".join(f'{{kind = "input", name = "{symbol}"}}' for symbol in symbols)
print(f"""module attributes {{o3.stage = "normalize"}} {{
  func.func @main({inputs}) -> ({results})
      attributes {{o3.guards = [{{of = #equal, text = "equal"}}], o3.symbols = [{listed}]}} {{
    return {", ".join(names)} : {", ".join(types)}
  }}
}}""")
