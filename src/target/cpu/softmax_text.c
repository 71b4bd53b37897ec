/* Three passes over the rows of a block, so that what one row has to wait for (the sum of a vector's lanes,
 * an exponential on its own) runs beside the work on the others: greatest scores; factors of the old sums,
 * several rows in a vector; exponentials. Rows are short enough to stay in the cache between them. The
 * comparison drops NaNs, which come back through the sum. A greatest score of -inf is taken for 0, so that
 * what is masked is exp(-inf) and not exp(-inf + inf).
 *
 * The exponential is that of math_functions.mlir for arguments of 0 and below: no overflow, and results below
 * 2e-38, beside a sum of at least 1, are 0. So the power of two is added to the exponent at once.
 */
#include "target/cpu/softmax_text.h"

#include "base/strbuf.h"

/* $L lanes, $V their vector type, $B its mask, $I the same of integers, $R the most rows. */
static const char TEXT[] =
    "module {\n"
    "func.func private @o3k_f32_clear(%S: memref<?xf32>, %s: index, %count: index) {\n"
    "  %c0 = arith.constant 0 : index\n  %lanes = arith.constant $L : index\n"
    "  %zero = arith.constant dense<0.0> : $V\n"
    "  scf.for %i = %c0 to %count step %lanes {\n"
    "    %at = arith.addi %s, %i : index\n"
    "    vector.store %zero, %S[%at] : memref<?xf32>, $V\n"
    "  }\n  return\n}\n"
    "func.func private @o3k_f32_softmax_begin(%M: memref<?xf32>, %m: index, %Z: memref<?xf32>, %z: index,\n"
    "    %Y: memref<?xf32>, %y: index, %y_row: index, %rows: index, %width: index) {\n"
    "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
    "  %zero = arith.constant 0.0 : f32\n  %low = arith.constant 0xFF800000 : f32\n"
    "  scf.for %r = %c0 to %rows step %c1 {\n"
    "    %mr = arith.addi %m, %r : index\n    %zr = arith.addi %z, %r : index\n"
    "    memref.store %low, %M[%mr] : memref<?xf32>\n    memref.store %zero, %Z[%zr] : memref<?xf32>\n"
    "    %ym = arith.muli %r, %y_row : index\n    %yr = arith.addi %y, %ym : index\n"
    "    scf.for %i = %c0 to %width step %c1 {\n"
    "      %at = arith.addi %yr, %i : index\n"
    "      memref.store %zero, %Y[%at] : memref<?xf32>\n"
    "    }\n  }\n  return\n}\n"
    "func.func private @o3k_f32_softmax_end(%Z: memref<?xf32>, %z: index, %Y: memref<?xf32>, %y: index,\n"
    "    %y_row: index, %rows: index, %width: index) {\n"
    "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
    "  %one = arith.constant 1.0 : f32\n"
    "  scf.for %r = %c0 to %rows step %c1 {\n"
    "    %zr = arith.addi %z, %r : index\n"
    "    %sum = memref.load %Z[%zr] : memref<?xf32>\n"
    "    %inverse = arith.divf %one, %sum : f32\n"
    "    %ym = arith.muli %r, %y_row : index\n    %yr = arith.addi %y, %ym : index\n"
    "    scf.for %i = %c0 to %width step %c1 {\n"
    "      %at = arith.addi %yr, %i : index\n"
    "      %v = memref.load %Y[%at] : memref<?xf32>\n"
    "      %q = arith.mulf %v, %inverse : f32\n"
    "      memref.store %q, %Y[%at] : memref<?xf32>\n"
    "    }\n  }\n  return\n}\n"
    "func.func private @o3k_f32_softmax_exp(%x: $V) -> $V attributes {passthrough = [\"alwaysinline\"]} {\n"
    "  %low = arith.constant dense<-8.7e1> : $V\n  %zero = arith.constant dense<0.0> : $V\n"
    "  %log2e = arith.constant dense<1.44269504> : $V\n  %magic = arith.constant dense<12582912.0> : $V\n"
    "  %ln2_high = arith.constant dense<-0.693359375> : $V\n"
    "  %ln2_low = arith.constant dense<2.12194440e-4> : $V\n"
    "  %one = arith.constant dense<1.0> : $V\n  %p0 = arith.constant dense<1.9875691500e-4> : $V\n"
    "  %p1 = arith.constant dense<1.3981999507e-3> : $V\n  %p2 = arith.constant dense<8.3334519073e-3> : $V\n"
    "  %p3 = arith.constant dense<4.1665795894e-2> : $V\n  %p4 = arith.constant dense<1.6666665459e-1> : $V\n"
    "  %p5 = arith.constant dense<5.0000001201e-1> : $V\n  %shift = arith.constant dense<23> : $I\n"
    "  %below = arith.cmpf olt, %x, %low : $V\n"
    "  %t = math.fma %x, %log2e, %magic : $V\n  %nf = arith.subf %t, %magic : $V\n"
    "  %bits = arith.bitcast %t : $V to $I\n  %n = arith.shli %bits, %shift : $I\n"
    "  %r0 = math.fma %nf, %ln2_high, %x : $V\n  %r = math.fma %nf, %ln2_low, %r0 : $V\n"
    "  %r2 = arith.mulf %r, %r : $V\n  %q1 = math.fma %p0, %r, %p1 : $V\n"
    "  %q2 = math.fma %q1, %r, %p2 : $V\n  %q3 = math.fma %q2, %r, %p3 : $V\n"
    "  %q4 = math.fma %q3, %r, %p4 : $V\n  %q5 = math.fma %q4, %r, %p5 : $V\n"
    "  %q6 = math.fma %q5, %r2, %r : $V\n  %y = arith.addf %q6, %one : $V\n"
    "  %yb = arith.bitcast %y : $V to $I\n  %scaled = arith.addi %yb, %n : $I\n"
    "  %e = arith.bitcast %scaled : $I to $V\n  %result = arith.select %below, %zero, %e : $B, $V\n"
    "  return %result : $V\n}\n"
    "func.func private @o3k_f32_softmax_block(%S: memref<?xf32>, %s: index, %s_row: index, %M: "
    "memref<?xf32>,\n"
    "    %m: index, %Z: memref<?xf32>, %z: index, %Y: memref<?xf32>, %y: index, %y_row: index, %rows: "
    "index,\n"
    "    %columns: index, %width: index) attributes {passthrough = [\"noinline\"]} {\n"
    "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
    "  %lanes = arith.constant $L : index\n"
    "  %zero = arith.constant 0.0 : f32\n  %low = arith.constant 0xFF800000 : f32\n"
    "  %unit = arith.constant 1.0 : f32\n"
    "  %vzero = arith.constant dense<0.0> : $V\n  %vlow = arith.constant dense<0xFF800000> : $V\n"
    "  %tops = memref.alloca() : memref<$Rxf32>\n  %steps = memref.alloca() : memref<$Rxf32>\n"
    "  %scales = memref.alloca() : memref<$Rxf32>\n"
    "  %rest = arith.remui %columns, %lanes : index\n"
    "  %full = arith.subi %columns, %rest : index\n"
    "  %mask = vector.create_mask %rest : $B\n"
    "  scf.for %r = %c0 to %rows step %c1 {\n"
    "    %sm = arith.muli %r, %s_row : index\n    %sr = arith.addi %s, %sm : index\n"
    "    %mr = arith.addi %m, %r : index\n"
    "    %max0 = scf.for %c = %c0 to %full step %lanes iter_args(%a = %vlow) -> ($V) {\n"
    "      %at = arith.addi %sr, %c : index\n"
    "      %x = vector.load %S[%at] : memref<?xf32>, $V\n"
    "      %more = arith.cmpf ogt, %x, %a : $V\n"
    "      %n = arith.select %more, %x, %a : $B, $V\n"
    "      scf.yield %n : $V\n"
    "    }\n"
    "    %max1 = scf.for %c = %full to %columns step %lanes iter_args(%a = %max0) -> ($V) {\n"
    "      %at = arith.addi %sr, %c : index\n"
    "      %x = vector.maskedload %S[%at], %mask, %vlow : memref<?xf32>, $B, $V into $V\n"
    "      %more = arith.cmpf ogt, %x, %a : $V\n"
    "      %n = arith.select %more, %x, %a : $B, $V\n"
    "      scf.yield %n : $V\n"
    "    }\n"
    "    %here = vector.reduction <maxnumf>, %max1 : $V into f32\n"
    "    %old = memref.load %M[%mr] : memref<?xf32>\n"
    "    %new = arith.maxnumf %old, %here : f32\n"
    "    %none = arith.cmpf oeq, %new, %low : f32\n"
    "    %top = arith.select %none, %zero, %new : f32\n"
    "    %step = arith.subf %old, %top : f32\n"
    "    memref.store %new, %M[%mr] : memref<?xf32>\n"
    "    memref.store %top, %tops[%r] : memref<$Rxf32>\n"
    "    memref.store %step, %steps[%r] : memref<$Rxf32>\n"
    "  }\n"
    "  scf.for %r = %c0 to %rows step %c1 {\n"
    "    %step = memref.load %steps[%r] : memref<$Rxf32>\n"
    "    %scale = math.exp %step : f32\n"
    "    memref.store %scale, %scales[%r] : memref<$Rxf32>\n"
    "  }\n"
    "  scf.for %r = %c0 to %rows step %c1 {\n"
    "    %sm = arith.muli %r, %s_row : index\n    %sr = arith.addi %s, %sm : index\n"
    "    %zr = arith.addi %z, %r : index\n"
    "    %top = memref.load %tops[%r] : memref<$Rxf32>\n"
    "    %vtop = vector.broadcast %top : f32 to $V\n"
    "    %sum0 = scf.for %c = %c0 to %full step %lanes iter_args(%a = %vzero) -> ($V) {\n"
    "      %at = arith.addi %sr, %c : index\n"
    "      %x = vector.load %S[%at] : memref<?xf32>, $V\n"
    "      %d = arith.subf %x, %vtop : $V\n"
    "      %e = func.call @o3k_f32_softmax_exp(%d) : ($V) -> $V\n"
    "      vector.store %e, %S[%at] : memref<?xf32>, $V\n"
    "      %n = arith.addf %a, %e : $V\n"
    "      scf.yield %n : $V\n"
    "    }\n"
    "    %sum1 = scf.for %c = %full to %columns step %lanes iter_args(%a = %sum0) -> ($V) {\n"
    "      %at = arith.addi %sr, %c : index\n"
    "      %x = vector.maskedload %S[%at], %mask, %vlow : memref<?xf32>, $B, $V into $V\n"
    "      %d = arith.subf %x, %vtop : $V\n"
    "      %e = func.call @o3k_f32_softmax_exp(%d) : ($V) -> $V\n"
    "      vector.maskedstore %S[%at], %mask, %e : memref<?xf32>, $B, $V\n"
    "      %n = arith.addf %a, %e : $V\n"
    "      scf.yield %n : $V\n"
    "    }\n"
    "    %sum = vector.reduction <add>, %sum1 fastmath<reassoc> : $V into f32\n"
    "    %scale = memref.load %scales[%r] : memref<$Rxf32>\n"
    "    %z_old = memref.load %Z[%zr] : memref<?xf32>\n"
    "    %z_scaled = arith.mulf %z_old, %scale : f32\n"
    "    %z_new = arith.addf %z_scaled, %sum : f32\n"
    "    memref.store %z_new, %Z[%zr] : memref<?xf32>\n"
    "    %step = memref.load %steps[%r] : memref<$Rxf32>\n"
    "    %grown = arith.cmpf une, %scale, %unit : f32\n"
    "    %any = arith.cmpf une, %step, %low : f32\n"
    "    %rescales = arith.andi %grown, %any : i1\n"
    "    scf.if %rescales {\n"
    "      %ym = arith.muli %r, %y_row : index\n      %yr = arith.addi %y, %ym : index\n"
    "      scf.for %i = %c0 to %width step %c1 {\n"
    "        %at = arith.addi %yr, %i : index\n"
    "        %v = memref.load %Y[%at] : memref<?xf32>\n"
    "        %q = arith.mulf %v, %scale : f32\n"
    "        memref.store %q, %Y[%at] : memref<?xf32>\n"
    "      }\n    }\n  }\n  return\n}\n}\n";

static void put_variable(o3_strbuf_t *text, char variable, int lanes) {
  if (variable == 'L') o3_strbuf_printf(text, "%d", lanes);
  if (variable == 'V') o3_strbuf_printf(text, "vector<%dxf32>", lanes);
  if (variable == 'I') o3_strbuf_printf(text, "vector<%dxi32>", lanes);
  if (variable == 'R') o3_strbuf_printf(text, "%d", O3_SOFTMAX_ROWS);
  if (variable == 'B') o3_strbuf_printf(text, "vector<%dxi1>", lanes);
}

char *o3_softmax_text(int lanes) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  for (const char *at = TEXT; *at; ++at) {
    if (*at == '$') {
      put_variable(&text, *++at, lanes);
    } else {
      o3_strbuf_append(&text, at, 1);
    }
  }
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
