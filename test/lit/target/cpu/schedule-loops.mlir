// RUN: o3-opt --target x86-64-v4 --cpu-schedule %s | FileCheck %s
// RUN: o3c %s --target x86-64-v4 --emit schedule --start-from schedule -O2 -q --hardware %S/Inputs/small-caches.json -o - | FileCheck %s --check-prefix=SMALL
// RUN: sed 's/inner = 0 : i64/inner = 5 : i64/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=INNER
// RUN: sed 's/inner = 0 : i64/inner = 0 : i64, across = 1 : i64/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=ACROSS
// RUN: sed 's/inner = 0 : i64/inner = 0 : i64, lanes = 8 : i64/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=LANES
// INNER: o3.schedule of 'linalg.generic': 'inner' is 5, it must be one of the op's dims, -1 when it has none
// ACROSS: o3.schedule of 'linalg.generic': 'across' is 1, it must be another dim than inner, -1 where there are sums
// LANES: o3.schedule of 'linalg.generic': 'lanes' is 8, it must be 0, or all of an inner dim along which f32 operands are contiguous

// Kernels without a product have a schedule, too: which loop is the innermost one, what a task takes of it, and what
// goes through registers. Caches decide, and cores where one run is all there is.

#id = affine_map<(i, j) -> (i, j)>
#swapped = affine_map<(i, j) -> (j, i)>
module {
  // All of it is one run.
  // CHECK-LABEL: @k0_elementwise_
  // CHECK: o3.schedule = {across = -1 : i64, across_block = 0 : i64, block = 2048 : i64, family = "loops", inner = 1 : i64, lanes = 0 : i64}
  // SMALL-LABEL: @k0_elementwise_
  // SMALL: block = 256 : i64
  func.func private @k0_elementwise_a(%x: tensor<128x1024xf32>, %out: tensor<128x1024xf32>) -> tensor<128x1024xf32>
      attributes {o3.kernel_kind = "elementwise"} {
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<128x1024xf32>) outs(%out : tensor<128x1024xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<128x1024xf32>
    return %y : tensor<128x1024xf32>
  }
  // CHECK-LABEL: @k1_movement_
  // CHECK: o3.schedule = {across = 0 : i64, across_block = 32 : i64, block = 16 : i64, family = "loops", inner = 1 : i64, lanes = 0 : i64}
  // SMALL-LABEL: @k1_movement_
  // SMALL: across_block = 8 : i64, block = 8 : i64
  func.func private @k1_movement_b(%x: tensor<300x200xf32>, %out: tensor<200x300xf32>) -> tensor<200x300xf32>
      attributes {o3.kernel_kind = "movement"} {
    %y = linalg.generic {indexing_maps = [#swapped, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<300x200xf32>) outs(%out : tensor<200x300xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<200x300xf32>
    return %y : tensor<200x300xf32>
  }
  // Rows of 12 KB fall into one set of the first-level cache: no more of them than it holds.
  // CHECK-LABEL: @k5_movement_
  // CHECK: o3.schedule = {across = 0 : i64, across_block = 32 : i64, block = 8 : i64, family = "loops", inner = 1 : i64, lanes = 0 : i64}
  func.func private @k5_movement_f(%x: tensor<128x3072xf32>, %out: tensor<3072x128xf32>) -> tensor<3072x128xf32>
      attributes {o3.kernel_kind = "movement"} {
    %y = linalg.generic {indexing_maps = [#swapped, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<128x3072xf32>) outs(%out : tensor<3072x128xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<3072x128xf32>
    return %y : tensor<3072x128xf32>
  }
  // The lanes of an image in blocks.
  // CHECK-LABEL: @k2_elementwise_
  // CHECK: o3.schedule = {across = -1 : i64, across_block = 0 : i64, block = 0 : i64, family = "loops", inner = 2 : i64, lanes = 16 : i64}
  func.func private @k2_elementwise_c(%x: tensor<9x57x16xf32>, %w: tensor<3xf32>, %out: tensor<9x28x16xf32>)
      -> tensor<9x28x16xf32> attributes {o3.kernel_kind = "elementwise"} {
    %y = linalg.generic {indexing_maps = [affine_map<(c, p, l, k) -> (c, p * 2 + k, l)>, affine_map<(c, p, l, k) -> (k)>,
                                          affine_map<(c, p, l, k) -> (c, p, l)>],
                         iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<9x57x16xf32>, tensor<3xf32>) outs(%out : tensor<9x28x16xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.maximumf %a, %o : f32
      linalg.yield %m : f32
    } -> tensor<9x28x16xf32>
    return %y : tensor<9x28x16xf32>
  }
  // Given by hand: the sum goes around the columns instead of along the rows.
  // CHECK-LABEL: @k3_elementwise_
  // CHECK: o3.schedule = {across = -1 : i64, across_block = 0 : i64, block = 64 : i64, family = "loops", inner = 0 : i64, lanes = 0 : i64}
  func.func private @k3_elementwise_d(%x: tensor<500x40xf32>, %out: tensor<500xf32>) -> tensor<500xf32>
      attributes {o3.kernel_kind = "elementwise"} {
    %y = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<500x40xf32>) outs(%out : tensor<500xf32>)
        attrs = {o3.schedule = {family = "loops", inner = 0 : i64, block = 64 : i64}} {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
    } -> tensor<500xf32>
    return %y : tensor<500xf32>
  }
  // CHECK-LABEL: @k4_rows_
  // CHECK-NOT: o3.schedule
  // CHECK: o3.schedule = {ahead = 0 : i64, ahead_level = 1 : i64, family = "rows", rows = 21 : i64}
  func.func private @k4_rows_e(%x: tensor<500x64xf32>, %out: tensor<500x64xf32>) -> tensor<500x64xf32>
      attributes {o3.kernel_kind = "rows", o3.rows = array<i64: 0>} {
    %zero = arith.constant dense<0.0> : tensor<500xf32>
    %s = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<500x64xf32>) outs(%zero : tensor<500xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %a, %o : f32
      linalg.yield %n : f32
    } -> tensor<500xf32>
    %y = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x, %s : tensor<500x64xf32>, tensor<500xf32>) outs(%out : tensor<500x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %n = arith.divf %a, %b : f32
      linalg.yield %n : f32
    } -> tensor<500x64xf32>
    return %y : tensor<500x64xf32>
  }
  // Rows that no core's cache holds ask for the next one, which the first level holds beside the row, or does not.
  // CHECK-LABEL: @k5_rows_
  // CHECK: o3.schedule = {ahead = 256 : i64, ahead_level = 1 : i64, family = "rows"
  // SMALL-LABEL: @k5_rows_
  // SMALL: o3.schedule = {ahead = 256 : i64, ahead_level = 2 : i64, family = "rows"
  func.func private @k5_rows_f(%x: tensor<5000x512xf32>, %out: tensor<5000x512xf32>) -> tensor<5000x512xf32>
      attributes {o3.kernel_kind = "rows", o3.rows = array<i64: 0>} {
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<5000x512xf32>) outs(%out : tensor<5000x512xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = math.exp %a : f32
      linalg.yield %n : f32
    } -> tensor<5000x512xf32>
    return %y : tensor<5000x512xf32>
  }
  // So do those that become one number each.
  // CHECK-LABEL: @k6_rows_
  // CHECK: o3.schedule = {ahead = 256 : i64, ahead_level = 1 : i64, family = "rows"
  func.func private @k6_rows_g(%x: tensor<5000x512xf32>, %out: tensor<5000xf32>) -> tensor<5000xf32>
      attributes {o3.kernel_kind = "rows", o3.rows = array<i64: 0>} {
    %y = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<5000x512xf32>) outs(%out : tensor<5000xf32>) {
    ^bb0(%a: f32, %o: f32):
      %e = math.exp %a : f32
      %n = arith.addf %e, %o : f32
      linalg.yield %n : f32
    } -> tensor<5000xf32>
    return %y : tensor<5000xf32>
  }
  func.func @main() attributes {o3.symbols = [], o3.guards = []} { return }
  // Every second column: a row of 4 is no vector in memory, though its type looks like one.
  // CHECK-LABEL: @k9_elementwise_
  // CHECK: lanes = 0 : i64
  // CHECK-LABEL: @k10_elementwise_
  // CHECK: lanes = 4 : i64
  func.func private @k9_elementwise_slice(%x: tensor<24x8xf32>, %out: tensor<24x4xf32>) -> tensor<24x4xf32>
      attributes {o3.kernel_kind = "elementwise"} {
    %part = tensor.extract_slice %x[0, 1] [24, 4] [1, 2] : tensor<24x8xf32> to tensor<24x4xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%part : tensor<24x4xf32>) outs(%out : tensor<24x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<24x4xf32>
    return %y : tensor<24x4xf32>
  }
  func.func private @k10_elementwise_half(%x: tensor<24x8xf32>, %out: tensor<24x4xf32>) -> tensor<24x4xf32>
      attributes {o3.kernel_kind = "elementwise"} {
    %part = tensor.extract_slice %x[0, 4] [24, 4] [1, 1] : tensor<24x8xf32> to tensor<24x4xf32>
    %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%part : tensor<24x4xf32>) outs(%out : tensor<24x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<24x4xf32>
    return %y : tensor<24x4xf32>
  }
  // A small cache has room for no whole line of 64 elements of 8 bytes in its sixteenth, and a line it is.
  // SMALL-LABEL: @k11_elementwise_
  // SMALL: block = 64 : i64
  func.func private @k11_elementwise_sum(%x: tensor<40x500xf64>, %out: tensor<500xf64>) -> tensor<500xf64>
      attributes {o3.kernel_kind = "elementwise"} {
    %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<40x500xf64>) outs(%out : tensor<500xf64>) {
    ^bb0(%a: f64, %o: f64):
      %n = arith.addf %a, %o : f64
      linalg.yield %n : f64
    } -> tensor<500xf64>
    return %y : tensor<500xf64>
  }
}
