// Functions of kernels that math_functions.mlir, which the CPU shares, does not have: those of f64, where a CPU calls
// libm, to some units in the last place; and the rare ones of f32 by way of f64.
module {
  // Cody-Waite reduction to |r| <= ln(2)/2, Taylor polynomial of degree 13, scaling in two steps.
  func.func private @o3k_math_exp64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 710.0 : f64
    %c1 = arith.constant -746.0 : f64
    %c2 = arith.constant 1.4426950408889634 : f64
    %c3 = arith.constant -0.6931471803691238 : f64
    %c4 = arith.constant -1.9082149292705877e-10 : f64
    %c5 = arith.constant 1.6059043836821613e-10 : f64
    %c6 = arith.constant 2.08767569878681e-09 : f64
    %c7 = arith.constant 2.505210838544172e-08 : f64
    %c8 = arith.constant 2.755731922398589e-07 : f64
    %c9 = arith.constant 2.7557319223985893e-06 : f64
    %c10 = arith.constant 2.48015873015873e-05 : f64
    %c11 = arith.constant 0.0001984126984126984 : f64
    %c12 = arith.constant 0.001388888888888889 : f64
    %c13 = arith.constant 0.008333333333333333 : f64
    %c14 = arith.constant 0.041666666666666664 : f64
    %c15 = arith.constant 0.16666666666666666 : f64
    %c16 = arith.constant 0.5 : f64
    %c17 = arith.constant 1.0 : f64
    %c18 = arith.constant 0.0 : f64
    %c19 = arith.constant 1 : i64
    %c20 = arith.constant 1023 : i64
    %c21 = arith.constant 52 : i64
    %v0 = arith.cmpf ogt, %x, %c0 : f64
    %v1 = arith.select %v0, %c0, %x : f64
    %v2 = arith.cmpf olt, %v1, %c1 : f64
    %v3 = arith.select %v2, %c1, %v1 : f64
    %v4 = arith.mulf %v3, %c2 : f64
    %v5 = math.roundeven %v4 : f64
    %v6 = math.fma %v5, %c3, %v3 : f64
    %v7 = math.fma %v5, %c4, %v6 : f64
    %v8 = math.fma %c5, %v7, %c6 : f64
    %v9 = math.fma %v8, %v7, %c7 : f64
    %v10 = math.fma %v9, %v7, %c8 : f64
    %v11 = math.fma %v10, %v7, %c9 : f64
    %v12 = math.fma %v11, %v7, %c10 : f64
    %v13 = math.fma %v12, %v7, %c11 : f64
    %v14 = math.fma %v13, %v7, %c12 : f64
    %v15 = math.fma %v14, %v7, %c13 : f64
    %v16 = math.fma %v15, %v7, %c14 : f64
    %v17 = math.fma %v16, %v7, %c15 : f64
    %v18 = math.fma %v17, %v7, %c16 : f64
    %v19 = math.fma %v18, %v7, %c17 : f64
    %v20 = math.fma %v19, %v7, %c17 : f64
    %v21 = arith.cmpf uno, %x, %x : f64
    %v22 = arith.select %v21, %c18, %v5 : f64
    %v23 = arith.fptosi %v22 : f64 to i64
    %v24 = arith.shrsi %v23, %c19 : i64
    %v25 = arith.subi %v23, %v24 : i64
    %v26 = arith.addi %v24, %c20 : i64
    %v27 = arith.shli %v26, %c21 : i64
    %v28 = arith.bitcast %v27 : i64 to f64
    %v29 = arith.mulf %v20, %v28 : f64
    %v30 = arith.addi %v25, %c20 : i64
    %v31 = arith.shli %v30, %c21 : i64
    %v32 = arith.bitcast %v31 : i64 to f64
    %v33 = arith.mulf %v29, %v32 : f64
    return %v33 : f64
  }

  // x = 2^e * m with m in [1/sqrt(2), sqrt(2)), then the series of 2 atanh((m - 1) / (m + 1)).
  func.func private @o3k_math_log64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 2.2250738585072014e-308 : f64
    %c1 = arith.constant 1.8014398509481984e+16 : f64
    %c2 = arith.constant -54.0 : f64
    %c3 = arith.constant 0.0 : f64
    %c4 = arith.constant 4604544271217802189 : i64
    %c5 = arith.constant 52 : i64
    %c6 = arith.constant 1.0 : f64
    %c7 = arith.constant 0.08 : f64
    %c8 = arith.constant 0.08695652173913043 : f64
    %c9 = arith.constant 0.09523809523809523 : f64
    %c10 = arith.constant 0.10526315789473684 : f64
    %c11 = arith.constant 0.11764705882352941 : f64
    %c12 = arith.constant 0.13333333333333333 : f64
    %c13 = arith.constant 0.15384615384615385 : f64
    %c14 = arith.constant 0.18181818181818182 : f64
    %c15 = arith.constant 0.2222222222222222 : f64
    %c16 = arith.constant 0.2857142857142857 : f64
    %c17 = arith.constant 0.4 : f64
    %c18 = arith.constant 0.6666666666666666 : f64
    %c19 = arith.constant 2.0 : f64
    %c20 = arith.constant 0.6931471803691238 : f64
    %c21 = arith.constant 1.9082149292705877e-10 : f64
    %c22 = arith.constant 0xFFF0000000000000 : f64
    %c23 = arith.constant 0x7FF8000000000000 : f64
    %c24 = arith.constant 0x7FF0000000000000 : f64
    %v0 = arith.cmpf olt, %x, %c0 : f64
    %v1 = arith.mulf %x, %c1 : f64
    %v2 = arith.select %v0, %v1, %x : f64
    %v3 = arith.select %v0, %c2, %c3 : f64
    %v4 = arith.bitcast %v2 : f64 to i64
    %v5 = arith.subi %v4, %c4 : i64
    %v6 = arith.shrsi %v5, %c5 : i64
    %v7 = arith.shli %v6, %c5 : i64
    %v8 = arith.subi %v4, %v7 : i64
    %v9 = arith.bitcast %v8 : i64 to f64
    %v10 = arith.sitofp %v6 : i64 to f64
    %v11 = arith.addf %v10, %v3 : f64
    %v12 = arith.subf %v9, %c6 : f64
    %v13 = arith.addf %v9, %c6 : f64
    %v14 = arith.divf %v12, %v13 : f64
    %v15 = arith.mulf %v14, %v14 : f64
    %v16 = math.fma %c7, %v15, %c8 : f64
    %v17 = math.fma %v16, %v15, %c9 : f64
    %v18 = math.fma %v17, %v15, %c10 : f64
    %v19 = math.fma %v18, %v15, %c11 : f64
    %v20 = math.fma %v19, %v15, %c12 : f64
    %v21 = math.fma %v20, %v15, %c13 : f64
    %v22 = math.fma %v21, %v15, %c14 : f64
    %v23 = math.fma %v22, %v15, %c15 : f64
    %v24 = math.fma %v23, %v15, %c16 : f64
    %v25 = math.fma %v24, %v15, %c17 : f64
    %v26 = math.fma %v25, %v15, %c18 : f64
    %v27 = math.fma %v26, %v15, %c19 : f64
    %v28 = arith.mulf %v14, %v27 : f64
    %v29 = math.fma %v11, %c21, %v28 : f64
    %v30 = math.fma %v11, %c20, %v29 : f64
    %v31 = arith.cmpf oeq, %x, %c3 : f64
    %v32 = arith.select %v31, %c22, %v30 : f64
    %v33 = arith.cmpf ult, %x, %c3 : f64
    %v34 = arith.select %v33, %c23, %v32 : f64
    %v35 = arith.cmpf oeq, %x, %c24 : f64
    %v36 = arith.select %v35, %c24, %v34 : f64
    return %v36 : f64
  }

  // exp(x) - 1; |x| <= 0.5: Taylor polynomial.
  func.func private @o3k_math_expm164(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 4.779477332387385e-14 : f64
    %c1 = arith.constant 7.647163731819816e-13 : f64
    %c2 = arith.constant 1.1470745597729725e-11 : f64
    %c3 = arith.constant 1.6059043836821613e-10 : f64
    %c4 = arith.constant 2.08767569878681e-09 : f64
    %c5 = arith.constant 2.505210838544172e-08 : f64
    %c6 = arith.constant 2.755731922398589e-07 : f64
    %c7 = arith.constant 2.7557319223985893e-06 : f64
    %c8 = arith.constant 2.48015873015873e-05 : f64
    %c9 = arith.constant 0.0001984126984126984 : f64
    %c10 = arith.constant 0.001388888888888889 : f64
    %c11 = arith.constant 0.008333333333333333 : f64
    %c12 = arith.constant 0.041666666666666664 : f64
    %c13 = arith.constant 0.16666666666666666 : f64
    %c14 = arith.constant 0.5 : f64
    %c15 = arith.constant 1.0 : f64
    %v0 = math.fma %c0, %x, %c1 : f64
    %v1 = math.fma %v0, %x, %c2 : f64
    %v2 = math.fma %v1, %x, %c3 : f64
    %v3 = math.fma %v2, %x, %c4 : f64
    %v4 = math.fma %v3, %x, %c5 : f64
    %v5 = math.fma %v4, %x, %c6 : f64
    %v6 = math.fma %v5, %x, %c7 : f64
    %v7 = math.fma %v6, %x, %c8 : f64
    %v8 = math.fma %v7, %x, %c9 : f64
    %v9 = math.fma %v8, %x, %c10 : f64
    %v10 = math.fma %v9, %x, %c11 : f64
    %v11 = math.fma %v10, %x, %c12 : f64
    %v12 = math.fma %v11, %x, %c13 : f64
    %v13 = math.fma %v12, %x, %c14 : f64
    %v14 = math.fma %v13, %x, %c15 : f64
    %v15 = arith.mulf %x, %v14 : f64
    %v16 = math.absf %x : f64
    %v17 = arith.cmpf ogt, %v16, %c14 : f64
    %v18 = func.call @o3k_math_exp64(%x) : (f64) -> f64
    %v19 = arith.subf %v18, %c15 : f64
    %v20 = arith.select %v17, %v19, %v15 : f64
    return %v20 : f64
  }

  // log(1 + x), corrected for what 1 + x rounds away (Kahan).
  func.func private @o3k_math_log1p64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %c1 = arith.constant 0.0 : f64
    %c2 = arith.constant 0x7FF0000000000000 : f64
    %v0 = arith.addf %x, %c0 : f64
    %v1 = arith.subf %v0, %c0 : f64
    %v2 = func.call @o3k_math_log64(%v0) : (f64) -> f64
    %v3 = arith.divf %x, %v1 : f64
    %v4 = arith.mulf %v2, %v3 : f64
    %v5 = arith.cmpf oeq, %v1, %c1 : f64
    %v6 = arith.select %v5, %x, %v4 : f64
    %v7 = arith.cmpf oeq, %v0, %c1 : f64
    %v8 = arith.select %v7, %v2, %v6 : f64
    %v9 = arith.cmpf oeq, %v0, %c2 : f64
    %v10 = arith.select %v9, %v0, %v8 : f64
    return %v10 : f64
  }

  func.func private @o3k_math_tanh64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 22.0 : f64
    %c1 = arith.constant 2.0 : f64
    %v0 = math.absf %x : f64
    %v1 = arith.cmpf ogt, %v0, %c0 : f64
    %v2 = arith.select %v1, %c0, %v0 : f64
    %v3 = arith.mulf %v2, %c1 : f64
    %v4 = func.call @o3k_math_expm164(%v3) : (f64) -> f64
    %v5 = arith.addf %v4, %c1 : f64
    %v6 = arith.divf %v4, %v5 : f64
    %v7 = math.copysign %v6, %x : f64
    return %v7 : f64
  }

  // Beyond 700, where exp(x) may overflow though exp(x) / 2 does not, exp(x / 2) twice.
  func.func private @o3k_math_sinh64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %c1 = arith.constant 0.5 : f64
    %c2 = arith.constant 700.0 : f64
    %v0 = math.absf %x : f64
    %v1 = func.call @o3k_math_expm164(%v0) : (f64) -> f64
    %v2 = arith.addf %v1, %c0 : f64
    %v3 = arith.divf %v1, %v2 : f64
    %v4 = arith.addf %v1, %v3 : f64
    %v5 = arith.mulf %v4, %c1 : f64
    %v6 = arith.mulf %v0, %c1 : f64
    %v7 = func.call @o3k_math_exp64(%v6) : (f64) -> f64
    %v8 = arith.mulf %v7, %c1 : f64
    %v9 = arith.mulf %v8, %v7 : f64
    %v10 = arith.cmpf ogt, %v0, %c2 : f64
    %v11 = arith.select %v10, %v9, %v5 : f64
    %v12 = math.copysign %v11, %x : f64
    return %v12 : f64
  }

  func.func private @o3k_math_cosh64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 0.5 : f64
    %c1 = arith.constant 1.0 : f64
    %c2 = arith.constant 700.0 : f64
    %v0 = math.absf %x : f64
    %v1 = arith.mulf %v0, %c0 : f64
    %v2 = func.call @o3k_math_exp64(%v1) : (f64) -> f64
    %v3 = arith.mulf %v2, %v2 : f64
    %v4 = arith.divf %c1, %v3 : f64
    %v5 = arith.addf %v3, %v4 : f64
    %v6 = arith.mulf %v5, %c0 : f64
    %v7 = arith.mulf %v2, %c0 : f64
    %v8 = arith.mulf %v7, %v2 : f64
    %v9 = arith.cmpf ogt, %v0, %c2 : f64
    %v10 = arith.select %v9, %v8, %v6 : f64
    return %v10 : f64
  }

  func.func private @o3k_math_asinh64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %c1 = arith.constant 0.6931471805599453 : f64
    %c2 = arith.constant 268435456.0 : f64
    %v0 = math.absf %x : f64
    %v1 = arith.mulf %v0, %v0 : f64
    %v2 = arith.addf %v1, %c0 : f64
    %v3 = math.sqrt %v2 : f64
    %v4 = arith.addf %v3, %c0 : f64
    %v5 = arith.divf %v1, %v4 : f64
    %v6 = arith.addf %v0, %v5 : f64
    %v7 = func.call @o3k_math_log1p64(%v6) : (f64) -> f64
    %v8 = func.call @o3k_math_log64(%v0) : (f64) -> f64
    %v9 = arith.addf %v8, %c1 : f64
    %v10 = arith.cmpf ogt, %v0, %c2 : f64
    %v11 = arith.select %v10, %v9, %v7 : f64
    %v12 = math.copysign %v11, %x : f64
    return %v12 : f64
  }

  func.func private @o3k_math_acosh64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %c1 = arith.constant 0.6931471805599453 : f64
    %c2 = arith.constant 268435456.0 : f64
    %v0 = arith.subf %x, %c0 : f64
    %v1 = arith.addf %v0, %v0 : f64
    %v2 = arith.mulf %v0, %v0 : f64
    %v3 = arith.addf %v1, %v2 : f64
    %v4 = math.sqrt %v3 : f64
    %v5 = arith.addf %v0, %v4 : f64
    %v6 = func.call @o3k_math_log1p64(%v5) : (f64) -> f64
    %v7 = func.call @o3k_math_log64(%x) : (f64) -> f64
    %v8 = arith.addf %v7, %c1 : f64
    %v9 = arith.cmpf ogt, %x, %c2 : f64
    %v10 = arith.select %v9, %v8, %v6 : f64
    return %v10 : f64
  }

  func.func private @o3k_math_atanh64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %c1 = arith.constant 0.5 : f64
    %v0 = math.absf %x : f64
    %v1 = arith.addf %v0, %v0 : f64
    %v2 = arith.subf %c0, %v0 : f64
    %v3 = arith.divf %v1, %v2 : f64
    %v4 = func.call @o3k_math_log1p64(%v3) : (f64) -> f64
    %v5 = arith.mulf %v4, %c1 : f64
    %v6 = math.copysign %v5, %x : f64
    return %v6 : f64
  }

  // Reduced by pi/2 in three parts with FMA: full accuracy up to |x| of about 2^30, beyond it the error grows.
  func.func private @o3k_math_sin64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 0.6366197723675814 : f64
    %c1 = arith.constant 1.5707963267948966 : f64
    %c2 = arith.constant 6.123233995736766e-17 : f64
    %c3 = arith.constant -1.4973849048591698e-33 : f64
    %c4 = arith.constant 4503599627370496.0 : f64
    %c5 = arith.constant 0.0 : f64
    %c6 = arith.constant -8.22063524662433e-18 : f64
    %c7 = arith.constant 2.8114572543455206e-15 : f64
    %c8 = arith.constant -7.647163731819816e-13 : f64
    %c9 = arith.constant 1.6059043836821613e-10 : f64
    %c10 = arith.constant -2.505210838544172e-08 : f64
    %c11 = arith.constant 2.7557319223985893e-06 : f64
    %c12 = arith.constant -0.0001984126984126984 : f64
    %c13 = arith.constant 0.008333333333333333 : f64
    %c14 = arith.constant -0.16666666666666666 : f64
    %c15 = arith.constant 1.0 : f64
    %c16 = arith.constant -1.5619206968586225e-16 : f64
    %c17 = arith.constant 4.779477332387385e-14 : f64
    %c18 = arith.constant -1.1470745597729725e-11 : f64
    %c19 = arith.constant 2.08767569878681e-09 : f64
    %c20 = arith.constant -2.755731922398589e-07 : f64
    %c21 = arith.constant 2.48015873015873e-05 : f64
    %c22 = arith.constant -0.001388888888888889 : f64
    %c23 = arith.constant 0.041666666666666664 : f64
    %c24 = arith.constant -0.5 : f64
    %c25 = arith.constant 1 : i64
    %c26 = arith.constant 0 : i64
    %c27 = arith.constant 2 : i64
    %v0 = arith.mulf %x, %c0 : f64
    %v1 = math.roundeven %v0 : f64
    %v2 = arith.negf %v1 : f64
    %v3 = math.fma %v2, %c1, %x : f64
    %v4 = math.fma %v2, %c2, %v3 : f64
    %v5 = math.fma %v2, %c3, %v4 : f64
    %v6 = math.absf %v1 : f64
    %v7 = arith.cmpf olt, %v6, %c4 : f64
    %v8 = arith.select %v7, %v1, %c5 : f64
    %v9 = arith.fptosi %v8 : f64 to i64
    %v10 = arith.mulf %v5, %v5 : f64
    %v11 = math.fma %c6, %v10, %c7 : f64
    %v12 = math.fma %v11, %v10, %c8 : f64
    %v13 = math.fma %v12, %v10, %c9 : f64
    %v14 = math.fma %v13, %v10, %c10 : f64
    %v15 = math.fma %v14, %v10, %c11 : f64
    %v16 = math.fma %v15, %v10, %c12 : f64
    %v17 = math.fma %v16, %v10, %c13 : f64
    %v18 = math.fma %v17, %v10, %c14 : f64
    %v19 = math.fma %v18, %v10, %c15 : f64
    %v20 = arith.mulf %v5, %v19 : f64
    %v21 = math.fma %c16, %v10, %c17 : f64
    %v22 = math.fma %v21, %v10, %c18 : f64
    %v23 = math.fma %v22, %v10, %c19 : f64
    %v24 = math.fma %v23, %v10, %c20 : f64
    %v25 = math.fma %v24, %v10, %c21 : f64
    %v26 = math.fma %v25, %v10, %c22 : f64
    %v27 = math.fma %v26, %v10, %c23 : f64
    %v28 = math.fma %v27, %v10, %c24 : f64
    %v29 = math.fma %v28, %v10, %c15 : f64
    %v30 = arith.andi %v9, %c25 : i64
    %v31 = arith.cmpi ne, %v30, %c26 : i64
    %v32 = arith.select %v31, %v29, %v20 : f64
    %v33 = arith.andi %v9, %c27 : i64
    %v34 = arith.cmpi ne, %v33, %c26 : i64
    %v35 = arith.negf %v32 : f64
    %v36 = arith.select %v34, %v35, %v32 : f64
    return %v36 : f64
  }

  func.func private @o3k_math_cos64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 0.6366197723675814 : f64
    %c1 = arith.constant 1.5707963267948966 : f64
    %c2 = arith.constant 6.123233995736766e-17 : f64
    %c3 = arith.constant -1.4973849048591698e-33 : f64
    %c4 = arith.constant 4503599627370496.0 : f64
    %c5 = arith.constant 0.0 : f64
    %c6 = arith.constant -8.22063524662433e-18 : f64
    %c7 = arith.constant 2.8114572543455206e-15 : f64
    %c8 = arith.constant -7.647163731819816e-13 : f64
    %c9 = arith.constant 1.6059043836821613e-10 : f64
    %c10 = arith.constant -2.505210838544172e-08 : f64
    %c11 = arith.constant 2.7557319223985893e-06 : f64
    %c12 = arith.constant -0.0001984126984126984 : f64
    %c13 = arith.constant 0.008333333333333333 : f64
    %c14 = arith.constant -0.16666666666666666 : f64
    %c15 = arith.constant 1.0 : f64
    %c16 = arith.constant -1.5619206968586225e-16 : f64
    %c17 = arith.constant 4.779477332387385e-14 : f64
    %c18 = arith.constant -1.1470745597729725e-11 : f64
    %c19 = arith.constant 2.08767569878681e-09 : f64
    %c20 = arith.constant -2.755731922398589e-07 : f64
    %c21 = arith.constant 2.48015873015873e-05 : f64
    %c22 = arith.constant -0.001388888888888889 : f64
    %c23 = arith.constant 0.041666666666666664 : f64
    %c24 = arith.constant -0.5 : f64
    %c25 = arith.constant 1 : i64
    %c26 = arith.constant 0 : i64
    %c27 = arith.constant 2 : i64
    %v0 = arith.mulf %x, %c0 : f64
    %v1 = math.roundeven %v0 : f64
    %v2 = arith.negf %v1 : f64
    %v3 = math.fma %v2, %c1, %x : f64
    %v4 = math.fma %v2, %c2, %v3 : f64
    %v5 = math.fma %v2, %c3, %v4 : f64
    %v6 = math.absf %v1 : f64
    %v7 = arith.cmpf olt, %v6, %c4 : f64
    %v8 = arith.select %v7, %v1, %c5 : f64
    %v9 = arith.fptosi %v8 : f64 to i64
    %v10 = arith.mulf %v5, %v5 : f64
    %v11 = math.fma %c6, %v10, %c7 : f64
    %v12 = math.fma %v11, %v10, %c8 : f64
    %v13 = math.fma %v12, %v10, %c9 : f64
    %v14 = math.fma %v13, %v10, %c10 : f64
    %v15 = math.fma %v14, %v10, %c11 : f64
    %v16 = math.fma %v15, %v10, %c12 : f64
    %v17 = math.fma %v16, %v10, %c13 : f64
    %v18 = math.fma %v17, %v10, %c14 : f64
    %v19 = math.fma %v18, %v10, %c15 : f64
    %v20 = arith.mulf %v5, %v19 : f64
    %v21 = math.fma %c16, %v10, %c17 : f64
    %v22 = math.fma %v21, %v10, %c18 : f64
    %v23 = math.fma %v22, %v10, %c19 : f64
    %v24 = math.fma %v23, %v10, %c20 : f64
    %v25 = math.fma %v24, %v10, %c21 : f64
    %v26 = math.fma %v25, %v10, %c22 : f64
    %v27 = math.fma %v26, %v10, %c23 : f64
    %v28 = math.fma %v27, %v10, %c24 : f64
    %v29 = math.fma %v28, %v10, %c15 : f64
    %v30 = arith.addi %v9, %c25 : i64
    %v31 = arith.andi %v30, %c25 : i64
    %v32 = arith.cmpi ne, %v31, %c26 : i64
    %v33 = arith.select %v32, %v29, %v20 : f64
    %v34 = arith.andi %v30, %c27 : i64
    %v35 = arith.cmpi ne, %v34, %c26 : i64
    %v36 = arith.negf %v33 : f64
    %v37 = arith.select %v35, %v36, %v33 : f64
    return %v37 : f64
  }

  func.func private @o3k_math_tan64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %v0 = func.call @o3k_math_sin64(%x) : (f64) -> f64
    %v1 = func.call @o3k_math_cos64(%x) : (f64) -> f64
    %v2 = arith.divf %v0, %v1 : f64
    return %v2 : f64
  }

  // |x| > 1: pi/2 - atan(1/x); then half of the angle twice, and the series.
  func.func private @o3k_math_atan64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %c1 = arith.constant 4.0 : f64
    %c2 = arith.constant 0.04 : f64
    %c3 = arith.constant -0.043478260869565216 : f64
    %c4 = arith.constant 0.047619047619047616 : f64
    %c5 = arith.constant -0.05263157894736842 : f64
    %c6 = arith.constant 0.058823529411764705 : f64
    %c7 = arith.constant -0.06666666666666667 : f64
    %c8 = arith.constant 0.07692307692307693 : f64
    %c9 = arith.constant -0.09090909090909091 : f64
    %c10 = arith.constant 0.1111111111111111 : f64
    %c11 = arith.constant -0.14285714285714285 : f64
    %c12 = arith.constant 0.2 : f64
    %c13 = arith.constant -0.3333333333333333 : f64
    %c14 = arith.constant 1.5707963267948966 : f64
    %v0 = math.absf %x : f64
    %v1 = arith.cmpf ogt, %v0, %c0 : f64
    %v2 = arith.divf %c0, %v0 : f64
    %v3 = arith.select %v1, %v2, %v0 : f64
    %v4 = math.fma %v3, %v3, %c0 : f64
    %v5 = math.sqrt %v4 : f64
    %v6 = arith.addf %v5, %c0 : f64
    %v7 = arith.divf %v3, %v6 : f64
    %v8 = math.fma %v7, %v7, %c0 : f64
    %v9 = math.sqrt %v8 : f64
    %v10 = arith.addf %v9, %c0 : f64
    %v11 = arith.divf %v7, %v10 : f64
    %v12 = arith.mulf %v11, %v11 : f64
    %v13 = arith.mulf %v11, %c1 : f64
    %v14 = math.fma %c2, %v12, %c3 : f64
    %v15 = math.fma %v14, %v12, %c4 : f64
    %v16 = math.fma %v15, %v12, %c5 : f64
    %v17 = math.fma %v16, %v12, %c6 : f64
    %v18 = math.fma %v17, %v12, %c7 : f64
    %v19 = math.fma %v18, %v12, %c8 : f64
    %v20 = math.fma %v19, %v12, %c9 : f64
    %v21 = math.fma %v20, %v12, %c10 : f64
    %v22 = math.fma %v21, %v12, %c11 : f64
    %v23 = math.fma %v22, %v12, %c12 : f64
    %v24 = math.fma %v23, %v12, %c13 : f64
    %v25 = math.fma %v24, %v12, %c0 : f64
    %v26 = arith.mulf %v13, %v25 : f64
    %v27 = arith.subf %c14, %v26 : f64
    %v28 = arith.select %v1, %v27, %v26 : f64
    %v29 = math.copysign %v28, %x : f64
    return %v29 : f64
  }

  func.func private @o3k_math_asin64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %v0 = arith.subf %c0, %x : f64
    %v1 = arith.addf %c0, %x : f64
    %v2 = arith.mulf %v0, %v1 : f64
    %v3 = math.sqrt %v2 : f64
    %v4 = arith.divf %x, %v3 : f64
    %v5 = func.call @o3k_math_atan64(%v4) : (f64) -> f64
    return %v5 : f64
  }

  func.func private @o3k_math_acos64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 1.0 : f64
    %c1 = arith.constant 2.0 : f64
    %v0 = arith.subf %c0, %x : f64
    %v1 = arith.addf %c0, %x : f64
    %v2 = arith.divf %v0, %v1 : f64
    %v3 = math.sqrt %v2 : f64
    %v4 = func.call @o3k_math_atan64(%v3) : (f64) -> f64
    %v5 = arith.mulf %v4, %c1 : f64
    return %v5 : f64
  }

  // |x| < 3: the series of exp(x^2) erf(x), whose terms are all positive; above: 1 - erfc(x) by its continued fraction.
  func.func private @o3k_math_erf64(%x: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 6.0 : f64
    %c1 = arith.constant 1.0 : f64
    %c2 = arith.constant 0 : index
    %c3 = arith.constant 64 : index
    %c4 = arith.constant 1 : index
    %c5 = arith.constant 64.0 : f64
    %c6 = arith.constant 2.0 : f64
    %c7 = arith.constant 1.1283791670955126 : f64
    %c8 = arith.constant 0.5 : f64
    %c9 = arith.constant 0.5641895835477563 : f64
    %c10 = arith.constant 3.0 : f64
    %v0 = math.absf %x : f64
    %v1 = arith.cmpf ogt, %v0, %c0 : f64
    %v2 = arith.select %v1, %c0, %v0 : f64
    %v3 = arith.mulf %v2, %v2 : f64
    %v4 = arith.negf %v3 : f64
    %v5 = func.call @o3k_math_exp64(%v4) : (f64) -> f64
    %v6 = arith.addf %v3, %v3 : f64
    %v7 = scf.for %i8 = %c2 to %c3 step %c4 iter_args(%s8 = %c1) -> (f64) {
      %v8 = arith.index_cast %i8 : index to i64
      %v9 = arith.sitofp %v8 : i64 to f64
      %v10 = arith.subf %c5, %v9 : f64
      %v11 = math.fma %v10, %c6, %c1 : f64
      %v12 = arith.divf %v6, %v11 : f64
      %v13 = math.fma %s8, %v12, %c1 : f64
      scf.yield %v13 : f64
    }
    %v14 = arith.mulf %v2, %c7 : f64
    %v15 = arith.mulf %v5, %v7 : f64
    %v16 = arith.mulf %v14, %v15 : f64
    %v17 = scf.for %i18 = %c2 to %c3 step %c4 iter_args(%s18 = %v2) -> (f64) {
      %v18 = arith.index_cast %i18 : index to i64
      %v19 = arith.sitofp %v18 : i64 to f64
      %v20 = arith.subf %c5, %v19 : f64
      %v21 = arith.mulf %v20, %c8 : f64
      %v22 = arith.divf %v21, %s18 : f64
      %v23 = arith.addf %v2, %v22 : f64
      scf.yield %v23 : f64
    }
    %v24 = arith.mulf %v5, %c9 : f64
    %v25 = arith.divf %v24, %v17 : f64
    %v26 = arith.subf %c1, %v25 : f64
    %v27 = arith.cmpf olt, %v2, %c10 : f64
    %v28 = arith.select %v27, %v16, %v26 : f64
    %v29 = math.copysign %v28, %x : f64
    return %v29 : f64
  }

  // exp(y log|x|) and the special cases of C.
  func.func private @o3k_math_pow64(%x: f64, %y: f64) -> f64 attributes {passthrough = ["alwaysinline"]} {
    %c0 = arith.constant 0.5 : f64
    %c1 = arith.constant 0.0 : f64
    %c2 = arith.constant 0x7FF0000000000000 : f64
    %c3 = arith.constant 0x7FF8000000000000 : f64
    %c4 = arith.constant 1.0 : f64
    %true = arith.constant true
    %v0 = math.absf %x : f64
    %v1 = func.call @o3k_math_log64(%v0) : (f64) -> f64
    %v2 = arith.mulf %y, %v1 : f64
    %v3 = func.call @o3k_math_exp64(%v2) : (f64) -> f64
    %v4 = arith.cmpf uno, %y, %y : f64
    %v5 = arith.mulf %y, %c0 : f64
    %v6 = math.floor %y : f64
    %v7 = arith.cmpf oeq, %v6, %y : f64
    %v8 = math.floor %v5 : f64
    %v9 = arith.cmpf oeq, %v8, %v5 : f64
    %v10 = arith.xori %v9, %true : i1
    %v11 = arith.andi %v7, %v10 : i1
    %v12 = arith.cmpf olt, %x, %c1 : f64
    %v13 = math.copysign %v3, %x : f64
    %v14 = arith.select %v11, %v13, %v3 : f64
    %v15 = arith.xori %v7, %true : i1
    %v16 = arith.andi %v12, %v15 : i1
    %v17 = arith.cmpf olt, %v0, %c2 : f64
    %v18 = arith.andi %v16, %v17 : i1
    %v19 = arith.select %v18, %c3, %v14 : f64
    %v20 = arith.cmpf oeq, %y, %c1 : f64
    %v21 = arith.cmpf oeq, %x, %c4 : f64
    %v22 = arith.ori %v20, %v21 : i1
    %v23 = arith.cmpf oeq, %v0, %c4 : f64
    %v24 = math.absf %y : f64
    %v25 = arith.cmpf oeq, %v24, %c2 : f64
    %v26 = arith.andi %v23, %v25 : i1
    %v27 = arith.ori %v22, %v26 : i1
    %v28 = arith.select %v27, %c4, %v19 : f64
    return %v28 : f64
  }

  func.func private @o3k_math_sin(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_sin64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_cos(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_cos64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_tan(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_tan64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_asin(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_asin64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_acos(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_acos64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_atan(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_atan64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_sinh(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_sinh64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_cosh(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_cosh64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_asinh(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_asinh64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_acosh(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_acosh64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_atanh(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %wide = arith.extf %x : f32 to f64
    %y = func.call @o3k_math_atanh64(%wide) : (f64) -> f64
    %narrow = arith.truncf %y : f64 to f32
    return %narrow : f32
  }

  func.func private @o3k_math_pow(%x: f32, %y: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %a = arith.extf %x : f32 to f64
    %b = arith.extf %y : f32 to f64
    %z = func.call @o3k_math_pow64(%a, %b) : (f64, f64) -> f64
    %narrow = arith.truncf %z : f64 to f32
    return %narrow : f32
  }
}
