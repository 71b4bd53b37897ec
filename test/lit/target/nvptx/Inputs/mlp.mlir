// y = softmax(x w): a product and rows.
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#line = affine_map<(d0) -> (d0)>
module {
  func.func @main(%x: tensor<33x64xf32> {o3.name = "x"}, %w: tensor<64x50xf32> {o3.name = "w"})
      -> (tensor<33x50xf32> {o3.name = "y"}) {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %e = tensor.empty() : tensor<33x50xf32>
    %r = tensor.empty() : tensor<33xf32>
    %f = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<33x50xf32>) {
    ^bb0(%o: f32):
      linalg.yield %zero : f32
    } -> tensor<33x50xf32>
    %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<33x64xf32>, tensor<64x50xf32>) outs(%f : tensor<33x50xf32>) {
    ^bb0(%i: f32, %j: f32, %o: f32):
      %m = arith.mulf %i, %j : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<33x50xf32>
    %n = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%r : tensor<33xf32>) {
    ^bb0(%o: f32):
      linalg.yield %low : f32
    } -> tensor<33xf32>
    %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%p : tensor<33x50xf32>) outs(%n : tensor<33xf32>) {
    ^bb0(%i: f32, %o: f32):
      %s = arith.maximumf %o, %i : f32
      linalg.yield %s : f32
    } -> tensor<33xf32>
    %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p, %max : tensor<33x50xf32>, tensor<33xf32>) outs(%e : tensor<33x50xf32>) {
    ^bb0(%i: f32, %j: f32, %o: f32):
      %d = arith.subf %i, %j : f32
      %s = math.exp %d : f32
      linalg.yield %s : f32
    } -> tensor<33x50xf32>
    return %y : tensor<33x50xf32>
  }
}
