# RUN: %python %s 13 > %t.fits.mlir
# RUN: o3-opt --target hopper --nvptx-kernels --nvptx-outline %t.fits.mlir | FileCheck --check-prefix=FITS %s
# RUN: %python %s 40 > %t.many.mlir
# RUN: not o3-opt --target hopper --nvptx-kernels --nvptx-outline %t.many.mlir 2>&1 | FileCheck --check-prefix=MANY %s
"""A kernel that is told the sizes and steps of many buffers has room for its type, and is refused where there are too many."""
# FITS: llvm.call @o3rt_gpu_launch
# MANY: node 'gpu.launch': its kernel reads more than 96 values from outside
import sys

MEMREF = "memref<?x?x?x?xf32, strided<[?, ?, ?, ?], offset: ?>>"


def main():
    count = int(sys.argv[1])
    names = [f"%x{i}" for i in range(count)]
    print("#id = affine_map<(a, b, c, d) -> (a, b, c, d)>")
    print(f"func.func @main(%session: !llvm.ptr, {', '.join(f'{name}: {MEMREF}' for name in names)}, %y: {MEMREF}) {{")
    print(f"  linalg.generic {{indexing_maps = [{', '.join(['#id'] * (count + 1))}],")
    print('      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}')
    print(f"      ins({', '.join(names)} : {', '.join([MEMREF] * count)}) outs(%y : {MEMREF}) {{")
    print(f"  ^bb0({', '.join(f'%e{i}: f32' for i in range(count))}, %out: f32):")
    for i in range(1, count):
        print(f"    %s{i} = arith.addf {f'%s{i - 1}' if i > 1 else '%e0'}, %e{i} : f32")
    print(f"    linalg.yield %s{count - 1} : f32\n  }}\n  return\n}}")


main()
