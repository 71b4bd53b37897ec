/* Conversion of one number between element types. */
#include <math.h>

#include "target/ref/lowering.h"

/* f64 to f32 by rounding to odd: the discarded bits leave a mark in the last one, so that rounding the result
 * once more, to 16 bits, is as exact as rounding once (Boldo and Melquiond, 2008). */
static MlirValue round_to_odd(o3_builder_t *b, MlirValue x) {
  MlirType f32 = mlirF32TypeGet(b->context), f64 = mlirF64TypeGet(b->context),
           i32 = mlirIntegerTypeGet(b->context, 32);
  MlirValue near = o3_build1(b, "arith.truncf", f32, O3_VALUES(x));
  MlirValue back = o3_build1(b, "arith.extf", f64, O3_VALUES(near));
  MlirValue bits = o3_build1(b, "arith.bitcast", i32, O3_VALUES(near));
  MlirValue size = o3_build_unary(b, "math.absf", x), back_size = o3_build_unary(b, "math.absf", back);
  MlirValue away =
      o3_build1(b, "arith.extui", i32, O3_VALUES(o3_build_cmpf(b, O3_CMPF_OGT, back_size, size)));
  MlirValue inexact = o3_build1(b, "arith.extui", i32, O3_VALUES(o3_build_cmpf(b, O3_CMPF_UNE, back, x)));
  MlirValue odd = o3_build2(b, "arith.ori", o3_build2(b, "arith.subi", bits, away), inexact);
  return o3_build1(b, "arith.bitcast", f32, O3_VALUES(odd));
}

/* 16-bit types to and from others go through f32: the back ends need no other conversion of theirs. */
static MlirValue float_to_float(o3_builder_t *b, MlirValue x, MlirType to) {
  MlirType from = mlirValueGetType(x), f32 = mlirF32TypeGet(b->context);
  if (mlirTypeEqual(from, to)) return x;
  int from_bits = o3_type_bits(from), to_bits = o3_type_bits(to);
  bool through_f32 =
      (from_bits == 16) != (to_bits == 16) ? from_bits == 64 || to_bits == 64 : from_bits == 16;
  if (!through_f32)
    return o3_build1(b, from_bits < to_bits ? "arith.extf" : "arith.truncf", to, O3_VALUES(x));
  MlirValue middle = from_bits == 64 ? round_to_odd(b, x) : o3_build1(b, "arith.extf", f32, O3_VALUES(x));
  return float_to_float(b, middle, to);
}

/* To 16-bit floats through a type that holds the integer exactly (64-bit ones: with 53 bits). */
static MlirValue int_to_float(o3_builder_t *b, MlirValue x, o3_number_kind_t kind, MlirType to) {
  MlirType exact = to;
  if (o3_type_bits(to) == 16)
    exact = o3_type_bits(mlirValueGetType(x)) < 32 ? mlirF32TypeGet(b->context) : mlirF64TypeGet(b->context);
  const char *name = kind == O3_NUMBER_SIGNED ? "arith.sitofp" : "arith.uitofp";
  return float_to_float(b, o3_build1(b, name, exact, O3_VALUES(x)), to);
}

/* Out of range is undefined for the plain conversion: numbers are clamped to a middle type that the machine
 * converts to, 32 bits where they are enough (vectors have no other), and the rest is cut off. NaN gives 0.
 */
static MlirValue float_to_int(o3_builder_t *b, MlirValue x, o3_number_kind_t kind, MlirType to) {
  MlirType f = mlirValueGetType(x);
  if (o3_type_bits(f) < 32) {
    f = mlirF32TypeGet(b->context);
    x = o3_build1(b, "arith.extf", f, O3_VALUES(x));
  }
  bool is_unsigned = kind == O3_NUMBER_UNSIGNED && o3_type_bits(to) == 64;
  bool narrow = o3_type_bits(to) < 32 || (o3_type_bits(to) == 32 && kind == O3_NUMBER_SIGNED);
  unsigned width = narrow ? 32 : 64;
  double end = ldexp(1, (int)width - (is_unsigned ? 0 : 1)); /* just above the range */
  double high = mlirTypeIsAF32(f) ? (double)nextafterf((float)end, 0) : narrow ? end - 1 : nextafter(end, 0);
  MlirType middle = mlirIntegerTypeGet(b->context, width);
  MlirValue nan = o3_build_cmpf(b, O3_CMPF_UNO, x, x);
  MlirValue clean = o3_build_select(b, nan, o3_build_float(b, f, 0), x);
  MlirValue above = o3_build2(b, "arith.maximumf", clean, o3_build_float(b, f, is_unsigned ? 0 : -end));
  MlirValue inside = o3_build2(b, "arith.minimumf", above, o3_build_float(b, f, high));
  MlirValue whole = o3_build1(b, is_unsigned ? "arith.fptoui" : "arith.fptosi", middle, O3_VALUES(inside));
  return o3_type_bits(to) == (int)width ? whole : o3_build1(b, "arith.trunci", to, O3_VALUES(whole));
}

static MlirValue to_bool(o3_builder_t *b, MlirValue x, bool is_float) {
  MlirValue zero = o3_build_number(b, mlirValueGetType(x), 0);
  return is_float ? o3_build_cmpf(b, O3_CMPF_UNE, x, zero) : o3_build_cmpi(b, O3_CMPI_NE, x, zero);
}

static MlirValue int_to_int(o3_builder_t *b, MlirValue x, o3_number_kind_t kind, MlirType to) {
  unsigned from_width = mlirIntegerTypeGetWidth(mlirValueGetType(x)), to_width = mlirIntegerTypeGetWidth(to);
  if (from_width == to_width) return x;
  if (from_width > to_width) return o3_build1(b, "arith.trunci", to, O3_VALUES(x));
  return o3_build1(b, kind == O3_NUMBER_SIGNED ? "arith.extsi" : "arith.extui", to, O3_VALUES(x));
}

/* ---- 8-bit floats, which are i8 here ---- */

static MlirValue bits_of(o3_builder_t *b, int64_t value) {
  return o3_build_int(b, mlirIntegerTypeGet(b->context, 32), value);
}

static MlirValue with_bits(o3_builder_t *b, const char *op, MlirValue x, int64_t value) {
  return o3_build2(b, op, x, bits_of(b, value));
}

static MlirValue from_bits(o3_builder_t *b, MlirValue x) {
  return o3_build1(b, "arith.bitcast", mlirF32TypeGet(b->context), O3_VALUES(x));
}

/* Where a number has f32's exponent and fraction: these many bits higher, the exponent relative to another
 * bias. */
static int shift_of(const o3_float8_t *f) { return 23 - f->fraction; }
static int64_t rebias(const o3_float8_t *f) { return (int64_t)(127 - f->bias) << 23; }
static double least(const o3_float8_t *f) { return ldexp(1, 1 - f->bias - f->fraction); }

static MlirType mlir_type(MlirContext context, const o3_float8_t *f) {
  return o3_type_parse(context, o3_dtype_info(f->dtype)->mlir);
}

/* Codes below 2^fraction are so many of the least numbers; others are moved in place. Nothing here is a
 * subnormal f32. */
static MlirValue from_float8(o3_builder_t *b, MlirValue x, const o3_float8_t *f) {
  MlirType f32 = mlirF32TypeGet(b->context), i32 = mlirIntegerTypeGet(b->context, 32);
  MlirValue code = o3_build1(b, "arith.extui", i32, O3_VALUES(x)),
            size = with_bits(b, "arith.andi", code, 0x7F);
  MlirValue high = with_bits(b, "arith.shli", size, shift_of(f));
  MlirValue normal = with_bits(b, "arith.addi", high, rebias(f));
  MlirValue count = o3_build1(b, "arith.sitofp", f32, O3_VALUES(size));
  MlirValue small = o3_build2(b, "arith.mulf", count, o3_build_float(b, f32, least(f)));
  MlirValue is_small = o3_build_cmpi(b, O3_CMPI_ULT, size, bits_of(b, INT64_C(1) << f->fraction));
  MlirValue bits = o3_build_select(b, is_small, o3_build1(b, "arith.bitcast", i32, O3_VALUES(small)), normal);
  MlirValue special, is_special;
  if (f->single) {
    special = bits_of(b, 0x7FC00000);
    is_special = o3_build_cmpi(b, O3_CMPI_EQ, code, bits_of(b, f->not_a_number));
  } else { /* codes above the largest number: infinity where the format has it, and NaN */
    special = with_bits(b, "arith.ori", high, f->beyond == f->not_a_number ? 0x7FC00000 : 0x7F800000);
    is_special = o3_build_cmpi(b, O3_CMPI_UGT, size, bits_of(b, f->top));
  }
  bits = o3_build_select(b, is_special, special, bits);
  MlirValue sign = with_bits(b, "arith.shli", with_bits(b, "arith.andi", code, 0x80), 24);
  MlirValue number = from_bits(b, o3_build2(b, "arith.ori", bits, sign));
  o3_op_attr_set(o3_value_def(number), O3_LW_FLOAT8, o3_attr_type(mlir_type(b->context, f)));
  return number;
}

/* The code of a magnitude, as bits of f32, when the range had no end. Below the least normal number it is
 * added to a power of two whose last place is the least number, which rounds it. */
static MlirValue round_to_code(o3_builder_t *b, MlirValue size, const o3_float8_t *f) {
  MlirType f32 = mlirF32TypeGet(b->context), i32 = mlirIntegerTypeGet(b->context, 32);
  int shift = shift_of(f);
  MlirValue odd = with_bits(b, "arith.andi", with_bits(b, "arith.shrui", size, shift), 1);
  MlirValue up =
      o3_build2(b, "arith.addi", with_bits(b, "arith.addi", size, (INT64_C(1) << (shift - 1)) - 1), odd);
  MlirValue normal = with_bits(b, "arith.subi", with_bits(b, "arith.shrui", up, shift), rebias(f) >> shift);
  MlirValue unit = o3_build_float(b, f32, ldexp(least(f), 23));
  MlirValue sum = o3_build2(b, "arith.addf", from_bits(b, size), unit);
  MlirValue small = o3_build2(b, "arith.subi", o3_build1(b, "arith.bitcast", i32, O3_VALUES(sum)),
                              o3_build1(b, "arith.bitcast", i32, O3_VALUES(unit)));
  MlirValue is_small = o3_build_cmpi(b, O3_CMPI_ULT, size, bits_of(b, rebias(f) + (INT64_C(1) << 23)));
  return o3_build_select(b, is_small, small, normal);
}

static MlirValue to_float8(o3_builder_t *b, MlirValue x, const o3_float8_t *f, bool saturate) {
  MlirType i32 = mlirIntegerTypeGet(b->context, 32);
  MlirValue bits = o3_build1(b, "arith.bitcast", i32, O3_VALUES(x));
  MlirValue size = with_bits(b, "arith.andi", bits, 0x7FFFFFFF), code = round_to_code(b, size, f);
  MlirValue is_beyond = o3_build_cmpi(b, O3_CMPI_UGT, code, bits_of(b, f->top));
  code = o3_build_select(b, is_beyond, bits_of(b, saturate ? f->top : f->beyond), code);
  MlirValue is_nan = o3_build_cmpi(b, O3_CMPI_UGT, size, bits_of(b, 0x7F800000));
  code = o3_build_select(b, is_nan, bits_of(b, f->not_a_number), code);
  MlirValue sign = with_bits(b, "arith.andi", with_bits(b, "arith.shrui", bits, 24), 0x80);
  MlirValue all = o3_build2(b, "arith.ori", code, sign);
  if (f->single) all = o3_build_select(b, o3_build_cmpi(b, O3_CMPI_EQ, code, bits_of(b, 0)), code, all);
  return o3_build1(b, "arith.trunci", mlirIntegerTypeGet(b->context, 8), O3_VALUES(all));
}

/* ---- All ---- */

static MlirValue convert_known(o3_builder_t *b, MlirValue x, MlirType from, MlirType to) {
  o3_number_kind_t kind = o3_number_kind(from);
  MlirType target = o3_lw_type(to);
  if (o3_type_is_bool(to)) return to_bool(b, x, kind == O3_NUMBER_FLOAT);
  if (o3_type_is_float(to))
    return kind == O3_NUMBER_FLOAT ? float_to_float(b, x, target) : int_to_float(b, x, kind, target);
  return kind == O3_NUMBER_FLOAT ? float_to_int(b, x, o3_number_kind(to), target)
                                 : int_to_int(b, x, kind, target);
}

/* By way of f32, which holds 8-bit floats and the integers among them exactly; f64 is rounded to odd. */
static MlirValue convert(o3_builder_t *b, MlirValue x, MlirType from, MlirType to, bool saturate) {
  const o3_float8_t *source = o3_type_float8(from), *target = o3_type_float8(to);
  MlirType f32 = mlirF32TypeGet(b->context);
  if (mlirTypeEqual(from, to)) return x;
  if (source) x = from_float8(b, x, source), from = f32;
  if (!target) return mlirTypeEqual(from, to) ? x : convert_known(b, x, from, to);
  if (mlirTypeIsAF64(from))
    x = round_to_odd(b, x);
  else if (!mlirTypeIsAF32(from))
    x = convert_known(b, x, from, f32);
  return to_float8(b, x, target, saturate);
}

MlirValue o3_lw_convert(o3_builder_t *b, MlirValue x, MlirType from, MlirType to) {
  return convert(b, x, from, to, true);
}

MlirValue o3_lw_convert_beyond(o3_builder_t *b, MlirValue x, MlirType from, MlirType to) {
  return convert(b, x, from, to, false);
}
