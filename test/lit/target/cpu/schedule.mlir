// RUN: o3-opt --target x86-64-v4 --cpu-schedule %s | FileCheck %s --check-prefix=V4
// RUN: o3-opt --target x86-64-v3 --cpu-schedule %s | FileCheck %s --check-prefix=V3
// RUN: o3c %s --target x86-64-v3 --emit schedule --start-from schedule -O2 -q --hardware %S/Inputs/small-caches.json -o - | FileCheck %s --check-prefix=SMALL
// RUN: o3c %s --target x86-64-v4 --emit schedule --start-from schedule -O2 -q --hardware %S/Inputs/two-ports.json -o - | FileCheck %s --check-prefix=PORTS
// RUN: sed 's/pixels = 5/pixels = "many"/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: sed 's/pixels = 5/pixels = 29/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: sed 's/pixels = 5/unroll = 5/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: sed 's/pixels = 5/pixel = 5/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=FIELD
// RUN: sed 's/attrs = {o3.kernel = "winograd_product"}/attrs = {o3.kernel = "winograd_product", o3.schedule = {blocks = 2 : i64, chunk = 15 : i64, family = "winograd", panel = 15 : i64, pixels = 15 : i64, whole = 15 : i64}}/' %s | not o3-opt --target x86-64-v4 --cpu-schedule - 2>&1 | FileCheck %s --check-prefix=SUMS
// SUMS: o3.schedule of 'linalg.generic': 'pixels' is 15, it must be 28 or less when multiplied by blocks
// RANGE: o3.schedule of 'linalg.generic': 'pixels' is 29, it must be an integer from 1 to 28
// TEXT: o3.schedule of 'linalg.generic': 'pixels' is "many"{{.*}}, it must be an integer from 1 to 28
// SUM: o3.schedule of 'linalg.generic': 'unroll' is 5, it must be a divisor of the innermost sum's length
// FIELD: o3.schedule of 'linalg.generic': 'pixel' is no field of family 'tiles'

// How a kernel will be computed stands on the op that it is about, and follows from the machine's figures: registers
// decide on the register tile, caches on what is worked on at a time. What an op says already stays.

module {
  // V4-LABEL: @k0_contraction_
  // V4: o3.schedule = {columns = 32 : i64, family = "packed", k_block = 256 : i64, lanes = 16 : i64, panel = 128 : i64, row_block = 64 : i64, rows = 8 : i64}
  // V3: o3.schedule = {columns = 16 : i64, family = "packed", k_block = 256 : i64, lanes = 8 : i64, panel = 128 : i64, row_block = 66 : i64, rows = 6 : i64}
  // SMALL: o3.schedule = {columns = 16 : i64, family = "packed", k_block = 64 : i64, lanes = 8 : i64, panel = 128 : i64, row_block = 66 : i64, rows = 6 : i64}
  func.func private @k0_contraction_a(%x: tensor<300x512xf32>, %w: tensor<512x96xf32>, %out: tensor<300x96xf32>)
      -> tensor<300x96xf32> attributes {o3.kernel_kind = "contraction"} {
    %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                          affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<300x512xf32>, tensor<512x96xf32>) outs(%out : tensor<300x96xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    } -> tensor<300x96xf32>
    return %y : tensor<300x96xf32>
  }
  // V4-LABEL: @k1_contraction_
  // V4: o3.schedule = {ahead = 0 : i64, blocks = 3 : i64, family = "tiles", lanes = 16 : i64, piece = 128 : i64, piece_first = 0 : i64, pixels = 8 : i64, strip_pixels = 128 : i64, strip_rows = 1 : i64, unroll = 4 : i64}
  // V3: o3.schedule = {ahead = 0 : i64, blocks = 1 : i64, family = "tiles", lanes = 8 : i64, piece = 128 : i64, piece_first = 0 : i64, pixels = 6 : i64, strip_pixels = 128 : i64, strip_rows = 1 : i64, unroll = 4 : i64}
  func.func private @k1_contraction_b(%x: tensor<12x64xf32>, %w: tensor<3x64x16xf32>, %out: tensor<12x48xf32>)
      -> tensor<12x48xf32> attributes {o3.kernel_kind = "contraction"} {
    %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                          affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>,
                                          affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<12x64xf32>, tensor<3x64x16xf32>) outs(%out : tensor<12x48xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    } -> tensor<12x48xf32>
    return %y : tensor<12x48xf32>
  }
  // V4-LABEL: @k2_contraction_
  // V4: o3.schedule = {ahead = 0 : i64, blocks = 1 : i64, family = "tiles", lanes = 16 : i64, piece = 128 : i64, piece_first = 0 : i64, pixels = 5 : i64, strip_pixels = 128 : i64, strip_rows = 1 : i64, unroll = 4 : i64}
  func.func private @k2_contraction_c(%x: tensor<12x64xf32>, %w: tensor<3x64x16xf32>, %out: tensor<12x48xf32>)
      -> tensor<12x48xf32> attributes {o3.kernel_kind = "contraction"} {
    %y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                          affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>,
                                          affine_map<(m, n, k) -> (m, n)>],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<12x64xf32>, tensor<3x64x16xf32>) outs(%out : tensor<12x48xf32>)
        attrs = {o3.schedule = {family = "tiles", pixels = 5 : i64, blocks = 1 : i64}} {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    } -> tensor<12x48xf32>
    return %y : tensor<12x48xf32>
  }
  // V4-LABEL: @k3_winograd_
  // V4: o3.schedule = {blocks = 1 : i64, chunk = 25 : i64, depth = 2 : i64, family = "winograd", lanes = 16 : i64, panel = 25 : i64, pixels = 25 : i64, strips = 4 : i64, weights_first = 0 : i64, whole = 25 : i64}
  // V3: o3.schedule = {blocks = 1 : i64, chunk = 24 : i64, depth = 2 : i64, family = "winograd", lanes = 8 : i64, panel = 24 : i64, pixels = 6 : i64, strips = 4 : i64, weights_first = 0 : i64, whole = 6 : i64}
  // SMALL: o3.schedule = {blocks = 1 : i64, chunk = 24 : i64, depth = 2 : i64, family = "winograd", lanes = 8 : i64, panel = 24 : i64, pixels = 6 : i64, strips = 1 : i64, weights_first = 0 : i64, whole = 6 : i64}
  // PORTS-LABEL: @k3_winograd_
  // PORTS: o3.schedule = {blocks = 2 : i64, chunk = 14 : i64, depth = 2 : i64, family = "winograd", lanes = 16 : i64, panel = 14 : i64, pixels = 14 : i64, strips = 4 : i64, weights_first = 0 : i64, whole = 14 : i64}
  func.func private @k3_winograd_d(%v: tensor<1x6x6x2x14x14x16xf32>, %u: tensor<2x6x6x2x16x16xf32>,
                                   %out: tensor<1x2x6x6x14x14x16xf32>) -> tensor<1x2x6x6x14x14x16xf32>
      attributes {o3.kernel_kind = "winograd"} {
    %y = linalg.generic {indexing_maps = [affine_map<(n, m, i, j, y, x, l, c, k) -> (n, i, j, c, y, x, k)>,
                                          affine_map<(n, m, i, j, y, x, l, c, k) -> (m, i, j, c, k, l)>,
                                          affine_map<(n, m, i, j, y, x, l, c, k) -> (n, m, i, j, y, x, l)>],
                         iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel",
                                           "parallel", "reduction", "reduction"]}
        ins(%v, %u : tensor<1x6x6x2x14x14x16xf32>, tensor<2x6x6x2x16x16xf32>)
        outs(%out : tensor<1x2x6x6x14x14x16xf32>) attrs = {o3.kernel = "winograd_product"} {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    } -> tensor<1x2x6x6x14x14x16xf32>
    return %y : tensor<1x2x6x6x14x14x16xf32>
  }
  // Six blocks of channels, read for two of results from beyond the core's cache.
  // V4-LABEL: @k4_contraction_
  // V4: o3.schedule = {ahead = 1 : i64, blocks = 1 : i64, family = "tiles"
  // PORTS-LABEL: @k4_contraction_
  // PORTS: blocks = 2 : i64, {{.*}} pixels = 14 : i64
  func.func private @k4_contraction_e(%x: tensor<1x6x8464x16xf32>, %w: tensor<2x6x16x16xf32>,
                                      %out: tensor<1x2x8464x16xf32>) -> tensor<1x2x8464x16xf32>
      attributes {o3.kernel_kind = "contraction"} {
    %y = linalg.generic {indexing_maps = [affine_map<(n, m, p, l, c, k) -> (n, c, p, k)>,
                                          affine_map<(n, m, p, l, c, k) -> (m, c, k, l)>,
                                          affine_map<(n, m, p, l, c, k) -> (n, m, p, l)>],
                         iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%x, %w : tensor<1x6x8464x16xf32>, tensor<2x6x16x16xf32>) outs(%out : tensor<1x2x8464x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    } -> tensor<1x2x8464x16xf32>
    return %y : tensor<1x2x8464x16xf32>
  }
  // Three blocks of results: where two multiply-adds start in a cycle, a tile takes all of them.
  // V4-LABEL: @k5_contraction_
  // V4: o3.schedule = {ahead = 1 : i64, blocks = 1 : i64, {{.*}} pixels = 28 : i64
  // PORTS-LABEL: @k5_contraction_
  // PORTS: blocks = 3 : i64, {{.*}} pixels = 9 : i64
  func.func private @k5_contraction_f(%x: tensor<1x6x8464x16xf32>, %w: tensor<3x6x16x16xf32>,
                                      %out: tensor<1x3x8464x16xf32>) -> tensor<1x3x8464x16xf32>
      attributes {o3.kernel_kind = "contraction"} {
    %y = linalg.generic {indexing_maps = [affine_map<(n, m, p, l, c, k) -> (n, c, p, k)>,
                                          affine_map<(n, m, p, l, c, k) -> (m, c, k, l)>,
                                          affine_map<(n, m, p, l, c, k) -> (n, m, p, l)>],
                         iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%x, %w : tensor<1x6x8464x16xf32>, tensor<3x6x16x16xf32>) outs(%out : tensor<1x3x8464x16xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %r = arith.addf %o, %m : f32
      linalg.yield %r : f32
    } -> tensor<1x3x8464x16xf32>
    return %y : tensor<1x3x8464x16xf32>
  }
  func.func @main() attributes {o3.symbols = [], o3.guards = []} { return }
}
