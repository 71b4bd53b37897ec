// f32 functions that vectorise: no branches, no tables, no calls. LLVM inlines them into the loops that use
// them. Errors were measured over all exponents, denormals included, against double precision; NaN gives NaN.
module {
  // Cody-Waite reduction to |r| <= ln(2)/2, polynomial of degree 6 (least greatest error, 0.05 ULP), scaling in two steps so that
  // results down to the least denormal and up to infinity come out right. At most 1 ULP.
  // The multiple of ln(2) is rounded by adding 1.5 * 2^23: no conversion that a NaN would make undefined.
  func.func private @o3k_math_exp(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %high = arith.constant 8.9e1 : f32
    %low = arith.constant -1.04e2 : f32
    %log2e = arith.constant 1.44269504 : f32
    %magic = arith.constant 12582912.0 : f32
    %magic_bits = arith.constant 0x4B400000 : i32
    %ln2_high = arith.constant -0.693359375 : f32
    %ln2_low = arith.constant 2.12194440e-4 : f32
    %one = arith.constant 1.0 : f32
    %p6 = arith.constant 1.381453942e-3 : f32
    %p5 = arith.constant 8.368745446e-3 : f32
    %p4 = arith.constant 4.166838899e-2 : f32
    %p3 = arith.constant 1.666652113e-1 : f32
    %p2 = arith.constant 4.999999404e-1 : f32
    %bias = arith.constant 127 : i32
    %shift = arith.constant 23 : i32
    %c1 = arith.constant 1 : i32
    %above = arith.cmpf ogt, %x, %high : f32
    %x1 = arith.select %above, %high, %x : f32
    %below = arith.cmpf olt, %x1, %low : f32
    %a = arith.select %below, %low, %x1 : f32
    %t = math.fma %a, %log2e, %magic : f32
    %bits = arith.bitcast %t : f32 to i32
    %n = arith.subi %bits, %magic_bits : i32
    %nf = arith.subf %t, %magic : f32
    %r0 = math.fma %nf, %ln2_high, %a : f32
    %r = math.fma %nf, %ln2_low, %r0 : f32
    %q5 = math.fma %p6, %r, %p5 : f32
    %q4 = math.fma %q5, %r, %p4 : f32
    %q3 = math.fma %q4, %r, %p3 : f32
    %q2 = math.fma %q3, %r, %p2 : f32
    %q1 = math.fma %q2, %r, %one : f32
    %y = math.fma %q1, %r, %one : f32
    %n1 = arith.shrsi %n, %c1 : i32
    %n2 = arith.subi %n, %n1 : i32
    %e1 = arith.addi %n1, %bias : i32
    %e2 = arith.addi %n2, %bias : i32
    %b1 = arith.shli %e1, %shift : i32
    %b2 = arith.shli %e2, %shift : i32
    %s1 = arith.bitcast %b1 : i32 to f32
    %s2 = arith.bitcast %b2 : i32 to f32
    %y1 = arith.mulf %y, %s1 : f32
    %y2 = arith.mulf %y1, %s2 : f32
    return %y2 : f32
  }

  // The same for arguments of 0 and below, where results below 2e-38 may be 0: one scaling, by a power of two that
  // is no denormal.
  func.func private @o3k_math_exp_low(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %low = arith.constant -8.7e1 : f32
    %zero = arith.constant 0.0 : f32
    %log2e = arith.constant 1.44269504 : f32
    %magic = arith.constant 12582912.0 : f32
    %ln2_high = arith.constant -0.693359375 : f32
    %ln2_low = arith.constant 2.12194440e-4 : f32
    %one = arith.constant 1.0 : f32
    %p6 = arith.constant 1.381453942e-3 : f32
    %p5 = arith.constant 8.368745446e-3 : f32
    %p4 = arith.constant 4.166838899e-2 : f32
    %p3 = arith.constant 1.666652113e-1 : f32
    %p2 = arith.constant 4.999999404e-1 : f32
    %bias = arith.constant 0x3F800000 : i32
    %shift = arith.constant 23 : i32
    %below = arith.cmpf olt, %x, %low : f32
    %t = math.fma %x, %log2e, %magic : f32
    %nf = arith.subf %t, %magic : f32
    %bits = arith.bitcast %t : f32 to i32
    %n = arith.shli %bits, %shift : i32
    %sb = arith.addi %n, %bias : i32
    %s = arith.bitcast %sb : i32 to f32
    %r0 = math.fma %nf, %ln2_high, %x : f32
    %r = math.fma %nf, %ln2_low, %r0 : f32
    %q5 = math.fma %p6, %r, %p5 : f32
    %q4 = math.fma %q5, %r, %p4 : f32
    %q3 = math.fma %q4, %r, %p3 : f32
    %q2 = math.fma %q3, %r, %p2 : f32
    %q1 = math.fma %q2, %r, %one : f32
    %y = math.fma %q1, %r, %one : f32
    %e = arith.mulf %y, %s : f32
    %result = arith.select %below, %zero, %e : f32
    return %result : f32
  }

  // The same for a result that is added to a number beside which 2^-125 is nothing: below that it is about 2^-125. One
  // scaling, by half the power of two, which is no infinity yet, of twice the polynomial.
  func.func private @o3k_math_exp_added(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %high = arith.constant 8.9e1 : f32
    %low = arith.constant -8.66e1 : f32
    %log2e = arith.constant 1.44269504 : f32
    %magic = arith.constant 12582912.0 : f32
    %ln2_high = arith.constant -0.693359375 : f32
    %ln2_low = arith.constant 2.12194440e-4 : f32
    %two = arith.constant 2.0 : f32
    %p6 = arith.constant 2.762907883e-03 : f32
    %p5 = arith.constant 1.673749089e-02 : f32
    %p4 = arith.constant 8.333677799e-02 : f32
    %p3 = arith.constant 3.333304226e-01 : f32
    %p2 = arith.constant 9.999998808e-01 : f32
    %bias = arith.constant 0x3F000000 : i32
    %shift = arith.constant 23 : i32
    %above = arith.cmpf ogt, %x, %high : f32
    %x1 = arith.select %above, %high, %x : f32
    %below = arith.cmpf olt, %x1, %low : f32
    %a = arith.select %below, %low, %x1 : f32
    %t = math.fma %a, %log2e, %magic : f32
    %nf = arith.subf %t, %magic : f32
    %bits = arith.bitcast %t : f32 to i32
    %n = arith.shli %bits, %shift : i32
    %sb = arith.addi %n, %bias : i32
    %s = arith.bitcast %sb : i32 to f32
    %r0 = math.fma %nf, %ln2_high, %a : f32
    %r = math.fma %nf, %ln2_low, %r0 : f32
    %q5 = math.fma %p6, %r, %p5 : f32
    %q4 = math.fma %q5, %r, %p4 : f32
    %q3 = math.fma %q4, %r, %p3 : f32
    %q2 = math.fma %q3, %r, %p2 : f32
    %q1 = math.fma %q2, %r, %two : f32
    %y = math.fma %q1, %r, %two : f32
    %result = arith.mulf %y, %s : f32
    return %result : f32
  }

  // x = 2^e * m with m in [2/3, 4/3), then a polynomial in m - 1. At most 1 ULP. Denormals are scaled first.
  func.func private @o3k_math_log(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %normal = arith.constant 1.17549435e-38 : f32
    %scale = arith.constant 8388608.0 : f32
    %minus23 = arith.constant -23.0 : f32
    %two_thirds = arith.constant 0x3F2AAAAB : i32
    %exponent = arith.constant 0xFF800000 : i32
    %ulp = arith.constant 1.1920928955078125e-07 : f32
    %ln2 = arith.constant 0.693147182 : f32
    %inf = arith.constant 0x7F800000 : f32
    %minus_inf = arith.constant 0xFF800000 : f32
    %nan = arith.constant 0x7FC00000 : f32
    %p0 = arith.constant -0.130310059 : f32
    %p1 = arith.constant -0.121483512 : f32
    %p2 = arith.constant -0.166846126 : f32
    %p3 = arith.constant -0.249996200 : f32
    %p4 = arith.constant 0.333331972 : f32
    %p5 = arith.constant -0.5 : f32
    %q0 = arith.constant 0.140869141 : f32
    %q1 = arith.constant 0.139814854 : f32
    %q2 = arith.constant 0.200120345 : f32
    %tiny = arith.cmpf olt, %x, %normal : f32
    %scaled = arith.mulf %x, %scale : f32
    %a = arith.select %tiny, %scaled, %x : f32
    %i0 = arith.select %tiny, %minus23, %zero : f32
    %bits = arith.bitcast %a : f32 to i32
    %d = arith.subi %bits, %two_thirds : i32
    %e = arith.andi %d, %exponent : i32
    %mb = arith.subi %bits, %e : i32
    %m = arith.bitcast %mb : i32 to f32
    %ef = arith.sitofp %e : i32 to f32
    %i = math.fma %ef, %ulp, %i0 : f32
    %f = arith.subf %m, %one : f32
    %s = arith.mulf %f, %f : f32
    %r1 = math.fma %p0, %s, %p1 : f32
    %t1 = math.fma %q0, %s, %q1 : f32
    %r2 = math.fma %r1, %s, %p2 : f32
    %t2 = math.fma %t1, %s, %q2 : f32
    %r3 = math.fma %r2, %s, %p3 : f32
    %r4 = math.fma %t2, %f, %r3 : f32
    %r5 = math.fma %r4, %f, %p4 : f32
    %r6 = math.fma %r5, %f, %p5 : f32
    %r7 = math.fma %r6, %s, %f : f32
    %r8 = math.fma %i, %ln2, %r7 : f32
    %is_zero = arith.cmpf oeq, %x, %zero : f32
    %v1 = arith.select %is_zero, %minus_inf, %r8 : f32
    %negative = arith.cmpf ult, %x, %zero : f32
    %v2 = arith.select %negative, %nan, %v1 : f32
    %is_inf = arith.cmpf oeq, %x, %inf : f32
    %v3 = arith.select %is_inf, %inf, %v2 : f32
    return %v3 : f32
  }

  // A rational function in x^2 (Eigen's ptanh); |x| is cut where tanh rounds to 1. At most 5 ULP.
  func.func private @o3k_math_tanh(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %limit = arith.constant 7.90531110763549805 : f32
    %minus_limit = arith.constant -7.90531110763549805 : f32
    %small = arith.constant 4.0e-4 : f32
    %a13 = arith.constant -2.76076847742355e-16 : f32
    %a11 = arith.constant 2.00018790482477e-13 : f32
    %a9 = arith.constant -8.60467152213735e-11 : f32
    %a7 = arith.constant 5.12229709037114e-08 : f32
    %a5 = arith.constant 1.48572235717979e-05 : f32
    %a3 = arith.constant 6.37261928875436e-04 : f32
    %a1 = arith.constant 4.89352455891786e-03 : f32
    %b6 = arith.constant 1.19825839466702e-06 : f32
    %b4 = arith.constant 1.18534705686654e-04 : f32
    %b2 = arith.constant 2.26843463243900e-03 : f32
    %b0 = arith.constant 4.89352518554385e-03 : f32
    %above = arith.cmpf ogt, %x, %limit : f32
    %x1 = arith.select %above, %limit, %x : f32
    %below = arith.cmpf olt, %x1, %minus_limit : f32
    %a = arith.select %below, %minus_limit, %x1 : f32
    %s = arith.mulf %a, %a : f32
    %n1 = math.fma %s, %a13, %a11 : f32
    %n2 = math.fma %s, %n1, %a9 : f32
    %n3 = math.fma %s, %n2, %a7 : f32
    %n4 = math.fma %s, %n3, %a5 : f32
    %n5 = math.fma %s, %n4, %a3 : f32
    %n6 = math.fma %s, %n5, %a1 : f32
    %n = arith.mulf %a, %n6 : f32
    %d1 = math.fma %s, %b6, %b4 : f32
    %d2 = math.fma %s, %d1, %b2 : f32
    %d = math.fma %s, %d2, %b0 : f32
    %q = arith.divf %n, %d : f32
    %magnitude = math.absf %x : f32
    %is_small = arith.cmpf olt, %magnitude, %small : f32
    %y = arith.select %is_small, %x, %q : f32
    return %y : f32
  }

  // |x| <= 0.921875: odd polynomial; above: 1 - exp(polynomial), N. Juffa's coefficients. At most 1 ULP.
  // Beyond 4.2 the result is 1, and up to there that exponential needs no care of ends: the power of two is
  // added to its exponent.
  func.func private @o3k_math_erf(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
    %one = arith.constant 1.0 : f32
    %split = arith.constant 0.921875 : f32
    %a0 = arith.constant -1.72853470e-5 : f32
    %a1 = arith.constant 3.83197126e-4 : f32
    %a2 = arith.constant -3.88396438e-3 : f32
    %a3 = arith.constant 2.42546219e-2 : f32
    %a4 = arith.constant -1.06777877e-1 : f32
    %a5 = arith.constant -6.34846687e-1 : f32
    %a6 = arith.constant -1.28717512e-1 : f32
    %b0 = arith.constant -5.96761703e-4 : f32
    %b1 = arith.constant 4.99119423e-3 : f32
    %b2 = arith.constant -2.67681349e-2 : f32
    %b3 = arith.constant 1.12819925e-1 : f32
    %b4 = arith.constant -3.76125336e-1 : f32
    %b5 = arith.constant 1.28379166e-1 : f32
    %limit = arith.constant 4.2 : f32
    %log2e = arith.constant 1.44269504 : f32
    %magic = arith.constant 12582912.0 : f32
    %ln2_high = arith.constant -0.693359375 : f32
    %ln2_low = arith.constant 2.12194440e-4 : f32
    %d6 = arith.constant 1.381453942e-3 : f32
    %d5 = arith.constant 8.368745446e-3 : f32
    %d4 = arith.constant 4.166838899e-2 : f32
    %d3 = arith.constant 1.666652113e-1 : f32
    %d2 = arith.constant 4.999999404e-1 : f32
    %shift = arith.constant 23 : i32
    %t0 = math.absf %x : f32
    %far = arith.cmpf ogt, %t0, %limit : f32
    %t = arith.select %far, %limit, %t0 : f32
    %s = arith.mulf %x, %x : f32
    %st = arith.mulf %t, %t : f32
    %r1 = math.fma %a0, %t, %a1 : f32
    %u1 = math.fma %a2, %t, %a3 : f32
    %r2 = math.fma %r1, %st, %u1 : f32
    %r3 = math.fma %r2, %t, %a4 : f32
    %r4 = math.fma %r3, %t, %a5 : f32
    %r5 = math.fma %r4, %t, %a6 : f32
    %minus_t = arith.negf %t : f32
    %r6 = math.fma %r5, %t, %minus_t : f32
    %m = math.fma %r6, %log2e, %magic : f32
    %nf = arith.subf %m, %magic : f32
    %bits = arith.bitcast %m : f32 to i32
    %n = arith.shli %bits, %shift : i32
    %v0 = math.fma %nf, %ln2_high, %r6 : f32
    %v = math.fma %nf, %ln2_low, %v0 : f32
    %q5 = math.fma %d6, %v, %d5 : f32
    %q4 = math.fma %q5, %v, %d4 : f32
    %q3 = math.fma %q4, %v, %d3 : f32
    %q2 = math.fma %q3, %v, %d2 : f32
    %q1 = math.fma %q2, %v, %one : f32
    %z = math.fma %q1, %v, %one : f32
    %zb = arith.bitcast %z : f32 to i32
    %eb = arith.addi %zb, %n : i32
    %e = arith.bitcast %eb : i32 to f32
    %rest = arith.subf %one, %e : f32
    %large = math.copysign %rest, %x : f32
    %p1 = math.fma %b0, %s, %b1 : f32
    %p2 = math.fma %p1, %s, %b2 : f32
    %p3 = math.fma %p2, %s, %b3 : f32
    %p4 = math.fma %p3, %s, %b4 : f32
    %p5 = math.fma %p4, %s, %b5 : f32
    %near = math.fma %p5, %x, %x : f32
    %is_large = arith.cmpf ogt, %t, %split : f32
    %y = arith.select %is_large, %large, %near : f32
    return %y : f32
  }
}
