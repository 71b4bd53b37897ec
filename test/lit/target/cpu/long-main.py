# RUN: %python %s loops 64 > %t.few && o3-opt --cpu-outline-serial %t.few | FileCheck --check-prefix=FEW %s
# RUN: %python %s loops 65 > %t.many && o3-opt --cpu-outline-serial --cpu-share-kernels %t.many | FileCheck --check-prefix=MANY %s
# RUN: %python %s calls 1000 > %t.short && o3-opt --cpu-split-main %t.short | FileCheck --check-prefix=SHORT %s
# RUN: %python %s sizes 1024 > %t.sizes && o3-opt --cpu-split-main %t.sizes | FileCheck --check-prefix=SIZES %s
# RUN: %python %s calls 1100 > %t.long && o3-opt --cpu-split-main %t.long | FileCheck --check-prefix=LONG %s
"""What is done where @main has hundreds of loops and calls."""
import sys

# FEW-NOT: call @o3k_
# FEW-COUNT-64: scf.for
# FEW-NOT: scf.for

# Loops of two kinds are two functions; buffers are arguments, numbers are not.
# MANY-LABEL: func.func @main
# MANY-NOT: scf.for
# MANY: call @o3k_loop_2(%[[a:.*]]) : (memref<8xf32>) -> ()
# MANY-NEXT: call @o3k_loop_3(%[[a]]) : (memref<8xf32>) -> ()
# MANY-NEXT: call @o3k_loop_2(%[[a]])
# MANY: return
# MANY: func.func private @o3k_loop_2(%{{.*}}: memref<8xf32>) attributes {passthrough = ["noinline"]}
# MANY: memref.store %{{.*}}, %{{.*}}[%{{.*}}]
# MANY: func.func private @o3k_loop_3
# MANY-NOT: func.func private

# SHORT-NOT: @o3k_main

# 1,100 calls, and one after what gives a value, which stays: five pieces. Views are made anew in each.
# LONG-LABEL: func.func @main
# LONG: llvm.call @o3rt_arena
# LONG: call @o3k_main0(%{{.*}}) : (memref<?xi8>) -> ()
# LONG-NEXT: call @o3k_main1(
# LONG-NEXT: call @o3k_main2(
# LONG-NEXT: call @o3k_main3(
# LONG-NEXT: call @o3k_main4(
# LONG: memref.load
# LONG-NEXT: call @work
# LONG-NEXT: return
# LONG: func.func private @o3k_main0(%[[bytes:.*]]: memref<?xi8>) attributes {passthrough = ["noinline"]}
# LONG-NEXT: %[[at:.*]] = arith.constant 64 : index
# LONG-NEXT: %[[view:.*]] = memref.view %[[bytes]][%[[at]]][] : memref<?xi8> to memref<8xf32>
# LONG-COUNT-256: call @work(%[[view]])
# LONG-NEXT: return

# Of what the place of a buffer is computed from, a little is in each piece, and more is given to it. Sizes of
# memory and arithmetic between the calls end no piece.
# SIZES-LABEL: func.func @main
# SIZES: %[[place:.*]] = arith.addi
# SIZES-NEXT: call @o3k_main0(%{{.*}}, %[[place]], %{{.*}}) : (memref<?xi8>, index, i64) -> ()
# SIZES-NEXT: call @o3k_main1(
# SIZES-NEXT: call @o3k_main2(
# SIZES-NEXT: call @o3k_main3(
# SIZES-NEXT: memref.load
# SIZES: func.func private @o3k_main0(%[[bytes:.*]]: memref<?xi8>, %[[given:.*]]: index, %[[size:.*]]: i64)
# SIZES-NEXT: %[[one:.*]] = arith.constant 1 : index
# SIZES-NEXT: %[[n:.*]] = arith.index_cast %[[size]]
# SIZES-NEXT: %[[square:.*]] = arith.muli %[[n]], %[[n]]
# SIZES-NEXT: %[[view:.*]] = memref.view %[[bytes]][%[[given]]][%[[square]]]
# SIZES-COUNT-256: call @work_on(%[[view]], %[[one]])
# SIZES-NEXT: return


def print_loop(value):
    print(f"""scf.for %i = %c0 to %c8 step %c1 {{
      memref.store %{value}, %a[%i] : memref<8xf32>
    }}""")


kind, count = sys.argv[1], int(sys.argv[2])
print("module {")
if kind == "sizes":
    print("""  func.func private @work_on(memref<?xf32>, index)
  llvm.func @o3rt_size(!llvm.ptr) -> i64""")
print("""  func.func private @work(memref<8xf32>)
  llvm.func @o3rt_arena(!llvm.ptr, i64) -> !llvm.ptr
  func.func @main(%session: !llvm.ptr, %bytes: memref<?xi8>) -> f32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %n = arith.constant 64 : i64
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %arena = llvm.call @o3rt_arena(%session, %n) : (!llvm.ptr, i64) -> !llvm.ptr
    %a = memref.view %bytes[%c64][] : memref<?xi8> to memref<8xf32>""")
if kind == "sizes":
    print("""%size = llvm.call @o3rt_size(%session) : (!llvm.ptr) -> i64
    %n0 = arith.index_cast %size : i64 to index
    %n1 = arith.muli %n0, %n0 : index
    %n2 = arith.muli %n1, %n0 : index
    %n3 = arith.muli %n2, %n0 : index
    %place = arith.addi %n3, %n2 : index
    %v = memref.view %bytes[%place][%n1] : memref<?xi8> to memref<?xf32>""")
for number in range(count):
    if kind == "loops":
        print_loop("one" if number % 2 else "zero")
    elif kind == "sizes":
        print(f"""%base{number}, %offset{number}, %sizes{number}, %strides{number} = memref.extract_strided_metadata %v
          : memref<?xf32> -> memref<f32>, index, index, index
        func.call @work_on(%v, %strides{number}) : (memref<?xf32>, index) -> ()""")
    else:
        print("func.call @work(%a) : (memref<8xf32>) -> ()")
print("""%first = memref.load %a[%c0] : memref<8xf32>
    func.call @work(%a) : (memref<8xf32>) -> ()
    return %first : f32
  }
}""")
