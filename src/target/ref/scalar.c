/* Bodies are total: what C, LLVM or the machine leave undefined (division by zero, too long shifts, numbers
 * that do not fit) has one result here, for a model's data must not be able to crash it. */
#include "target/ref/scalar.h"

#include <math.h>

#include "base/check.h"

/* ---- Half precision ---- */

static bool is_half(MlirType type) { return mlirTypeIsAF16(type) || mlirTypeIsABF16(type); }

MlirType o3_scalar_wide_type(MlirType type) {
  return is_half(type) ? mlirF32TypeGet(mlirTypeGetContext(type)) : type;
}

MlirValue o3_scalar_widen(o3_builder_t *b, MlirValue x) {
  MlirType type = mlirValueGetType(x), wide = o3_scalar_wide_type(type);
  return mlirTypeEqual(type, wide) ? x : o3_build1(b, "arith.extf", wide, O3_VALUES(x));
}

MlirValue o3_scalar_narrow(o3_builder_t *b, MlirValue x, MlirType type) {
  if (mlirTypeEqual(mlirValueGetType(x), type)) return x;
  return o3_build1(b, "arith.truncf", type, O3_VALUES(x));
}

/* ---- One operand ---- */

static MlirValue number(const o3_scalar_t *in, double value) {
  return o3_build_number(in->builder, mlirValueGetType(in->args[0]), value);
}

MlirValue o3_scalar_self(const o3_scalar_t *in) { return in->args[0]; }

MlirValue o3_scalar_neg(const o3_scalar_t *in) {
  return o3_build2(in->builder, "arith.subi", number(in, 0), in->args[0]);
}

MlirValue o3_scalar_sigmoid(const o3_scalar_t *in) {
  o3_builder_t *b = in->builder;
  MlirValue one = number(in, 1);
  MlirValue e = o3_build_unary(b, "math.exp", o3_build_unary(b, "arith.negf", in->args[0]));
  return o3_build2(b, "arith.divf", one, o3_build2(b, "arith.addf", one, e));
}

/* NaN and zeros stay what they are. */
MlirValue o3_scalar_sign(const o3_scalar_t *in) {
  o3_builder_t *b = in->builder;
  MlirValue x = in->args[0], zero = number(in, 0);
  MlirValue above, below;
  if (in->kind == O3_NUMBER_FLOAT) {
    above = o3_build_cmpf(b, O3_CMPF_OGT, x, zero);
    below = o3_build_cmpf(b, O3_CMPF_OLT, x, zero);
  } else {
    above = o3_build_cmpi(b, in->kind == O3_NUMBER_SIGNED ? O3_CMPI_SGT : O3_CMPI_UGT, x, zero);
    below = o3_build_cmpi(b, in->kind == O3_NUMBER_SIGNED ? O3_CMPI_SLT : O3_CMPI_ULT, x, zero);
  }
  MlirValue rest = o3_build_select(b, below, number(in, -1), x);
  return o3_build_select(b, above, number(in, 1), rest);
}

MlirValue o3_scalar_not(const o3_scalar_t *in) {
  return o3_build2(in->builder, "arith.xori", in->args[0], number(in, -1));
}

MlirValue o3_scalar_is_nan(const o3_scalar_t *in) {
  return o3_build_cmpf(in->builder, O3_CMPF_UNO, in->args[0], in->args[0]);
}

MlirValue o3_scalar_is_inf(const o3_scalar_t *in) {
  bool positive = o3_op_bool(in->op, "positive", true), negative = o3_op_bool(in->op, "negative", true);
  o3_builder_t *b = in->builder;
  MlirValue up = o3_build_cmpf(b, O3_CMPF_OEQ, in->args[0], number(in, INFINITY));
  MlirValue down = o3_build_cmpf(b, O3_CMPF_OEQ, in->args[0], number(in, -INFINITY));
  if (positive && negative) return o3_build2(b, "arith.ori", up, down);
  if (!positive && !negative) return o3_build_int(b, mlirIntegerTypeGet(b->context, 1), 0);
  return positive ? up : down;
}

/* A rounding that the model asks for is marked: back ends may leave out those between ops of half precision.
 */
static void mark_rounding(const o3_scalar_t *in, MlirValue result) {
  MlirOperation def = o3_value_def(result);
  if (!o3_op_bool(in->op, "rounds", false) || mlirOperationIsNull(def) || !o3_op_is(def, "arith.truncf"))
    return;
  o3_op_attr_set(def, O3_LW_ROUNDS, mlirUnitAttrGet(in->builder->context));
}

MlirValue o3_scalar_cast(const o3_scalar_t *in) {
  MlirType from = o3_lw_old_element(in->op, 0);
  bool saturates = o3_op_bool(in->op, "saturate", true);
  MlirValue result = saturates ? o3_lw_convert(in->builder, in->args[0], from, in->type)
                               : o3_lw_convert_beyond(in->builder, in->args[0], from, in->type);
  mark_rounding(in, result);
  return result;
}

MlirValue o3_scalar_bitcast(const o3_scalar_t *in) {
  MlirType to = o3_lw_type(in->type);
  if (mlirTypeEqual(mlirValueGetType(in->args[0]), to)) return in->args[0];
  return o3_build1(in->builder, "arith.bitcast", to, O3_VALUES(in->args[0]));
}

/* ---- Division ---- */

static MlirValue is_zero(const o3_scalar_t *in, MlirValue x) {
  return o3_build_cmpi(in->builder, O3_CMPI_EQ, x, number(in, 0));
}

/* The divisor, or 1 where dividing would trap. */
static MlirValue safe_divisor(const o3_scalar_t *in) {
  o3_builder_t *b = in->builder;
  MlirValue traps = is_zero(in, in->args[1]);
  if (in->kind == O3_NUMBER_SIGNED) {
    unsigned width = mlirIntegerTypeGetWidth(mlirValueGetType(in->args[0]));
    MlirValue smallest = o3_build_int(b, mlirValueGetType(in->args[0]), (int64_t)(UINT64_MAX << (width - 1)));
    MlirValue minus = o3_build_cmpi(b, O3_CMPI_EQ, in->args[1], number(in, -1));
    MlirValue overflows =
        o3_build2(b, "arith.andi", minus, o3_build_cmpi(b, O3_CMPI_EQ, in->args[0], smallest));
    traps = o3_build2(b, "arith.ori", traps, overflows);
  }
  return o3_build_select(b, traps, number(in, 1), in->args[1]);
}

MlirValue o3_scalar_div(const o3_scalar_t *in) {
  const char *name = in->kind == O3_NUMBER_SIGNED ? "arith.divsi" : "arith.divui";
  MlirValue quotient = o3_build2(in->builder, name, in->args[0], safe_divisor(in));
  return o3_build_select(in->builder, is_zero(in, in->args[1]), number(in, 0), quotient);
}

MlirValue o3_scalar_rem(const o3_scalar_t *in) {
  const char *name = in->kind == O3_NUMBER_SIGNED ? "arith.remsi" : "arith.remui";
  return o3_build2(in->builder, name, in->args[0], safe_divisor(in));
}

/* A remainder that is not 0 and of the other sign is moved by one divisor. */
MlirValue o3_scalar_mod(const o3_scalar_t *in) {
  o3_builder_t *b = in->builder;
  bool is_float = in->kind == O3_NUMBER_FLOAT;
  if (in->kind == O3_NUMBER_UNSIGNED) return o3_scalar_rem(in);
  MlirValue zero = number(in, 0), divisor = in->args[1];
  MlirValue rest = is_float ? o3_build2(b, "arith.remf", in->args[0], divisor) : o3_scalar_rem(in);
  MlirValue rest_below, divisor_below, some;
  if (is_float) {
    rest_below = o3_build_cmpf(b, O3_CMPF_OLT, rest, zero);
    divisor_below = o3_build_cmpf(b, O3_CMPF_OLT, divisor, zero);
    some = o3_build_cmpf(b, O3_CMPF_ONE, rest, zero);
  } else {
    rest_below = o3_build_cmpi(b, O3_CMPI_SLT, rest, zero);
    divisor_below = o3_build_cmpi(b, O3_CMPI_SLT, divisor, zero);
    some = o3_build_cmpi(b, O3_CMPI_NE, rest, zero);
  }
  MlirValue moved = o3_build2(b, is_float ? "arith.addf" : "arith.addi", rest, divisor);
  MlirValue differ = o3_build2(b, "arith.xori", rest_below, divisor_below);
  return o3_build_select(b, o3_build2(b, "arith.andi", some, differ), moved, rest);
}

/* ---- Powers ---- */

enum { RESULT, BASE, EXPONENT };

/* One bit of the exponent, from the lowest. */
static o3_status_t square_step(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                               MlirValue *next) {
  (void)context;
  (void)index;
  MlirValue one = o3_build_int(b, mlirValueGetType(carried[EXPONENT]), 1);
  MlirValue odd =
      o3_build1(b, "arith.trunci", mlirIntegerTypeGet(b->context, 1), O3_VALUES(carried[EXPONENT]));
  MlirValue product = o3_build2(b, "arith.muli", carried[RESULT], carried[BASE]);
  next[RESULT] = o3_build_select(b, odd, product, carried[RESULT]);
  next[BASE] = o3_build2(b, "arith.muli", carried[BASE], carried[BASE]);
  next[EXPONENT] = o3_build2(b, "arith.shrui", carried[EXPONENT], one);
  return NULL;
}

/* By squaring, modulo 2^width. Negative exponents: only powers of 1 and -1 are not 0, and for those the bits
 * of the two's complement give the right sign. */
static MlirValue integer_power(const o3_scalar_t *in, bool signed_exponent) {
  o3_builder_t *b = in->builder;
  MlirValue base = in->args[0], exponent = in->args[1], results[3];
  MlirValue inits[3] = {number(in, 1), base, exponent};
  unsigned width = mlirIntegerTypeGetWidth(mlirValueGetType(exponent));
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = o3_build_index(b, width),
                   .step = o3_build_index(b, 1),
                   .num_carried = 3,
                   .inits = inits,
                   .body = square_step};
  o3_status_t status = o3_build_for(b, &loop, results);
  O3_ASSERT(!status, "square_step never fails");
  if (!signed_exponent) return results[RESULT];
  MlirValue zero = o3_build_int(b, mlirValueGetType(exponent), 0);
  MlirValue negative = o3_build_cmpi(b, O3_CMPI_SLT, exponent, zero);
  MlirValue unit = o3_build_cmpi(b, O3_CMPI_EQ, base, number(in, 1));
  if (in->kind == O3_NUMBER_SIGNED)
    unit = o3_build2(b, "arith.ori", unit, o3_build_cmpi(b, O3_CMPI_EQ, base, number(in, -1)));
  MlirValue vanishes =
      o3_build2(b, "arith.andi", negative,
                o3_build2(b, "arith.xori", unit, o3_build_int(b, mlirIntegerTypeGet(b->context, 1), 1)));
  return o3_build_select(b, vanishes, number(in, 0), results[RESULT]);
}

/* Floats in the base's (wide) type; an integer to a float power in f64, then towards zero. */
MlirValue o3_scalar_pow(const o3_scalar_t *in) {
  o3_builder_t *b = in->builder;
  MlirType base = o3_lw_old_element(in->op, 0), exponent = o3_lw_old_element(in->op, 1);
  bool integers = !o3_type_is_float(base) && !o3_type_is_float(exponent);
  if (integers) return integer_power(in, o3_number_kind(exponent) == O3_NUMBER_SIGNED);
  MlirType wide = o3_type_is_float(base) ? o3_scalar_wide_type(base) : mlirF64TypeGet(b->context);
  MlirValue x = o3_lw_convert(b, in->args[0], base, wide), y = o3_lw_convert(b, in->args[1], exponent, wide);
  MlirValue power = o3_build2(b, "math.powf", x, y);
  return o3_lw_convert(b, power, wide, in->type);
}

/* ---- Bits, comparisons ---- */

MlirValue o3_scalar_shift(const o3_scalar_t *in) {
  o3_builder_t *b = in->builder;
  bool left = o3_op_is(in->op, "o3.shift_left"), arithmetic = !left && in->kind == O3_NUMBER_SIGNED;
  unsigned width = mlirIntegerTypeGetWidth(mlirValueGetType(in->args[0]));
  MlirValue last = number(in, width - 1);
  MlirValue fits = o3_build_cmpi(b, O3_CMPI_ULE, in->args[1], last);
  MlirValue amount = o3_build_select(b, fits, in->args[1], last);
  const char *name = left ? "arith.shli" : arithmetic ? "arith.shrsi" : "arith.shrui";
  MlirValue shifted = o3_build2(b, name, in->args[0], amount);
  return arithmetic ? shifted : o3_build_select(b, fits, shifted, number(in, 0));
}

static MlirValue compare(const o3_scalar_t *in, o3_cmpf_t f, o3_cmpi_t s, o3_cmpi_t u) {
  if (in->kind == O3_NUMBER_FLOAT) return o3_build_cmpf(in->builder, f, in->args[0], in->args[1]);
  return o3_build_cmpi(in->builder, in->kind == O3_NUMBER_SIGNED ? s : u, in->args[0], in->args[1]);
}

MlirValue o3_scalar_equal(const o3_scalar_t *in) { return compare(in, O3_CMPF_OEQ, O3_CMPI_EQ, O3_CMPI_EQ); }
MlirValue o3_scalar_less(const o3_scalar_t *in) { return compare(in, O3_CMPF_OLT, O3_CMPI_SLT, O3_CMPI_ULT); }
MlirValue o3_scalar_less_equal(const o3_scalar_t *in) {
  return compare(in, O3_CMPF_OLE, O3_CMPI_SLE, O3_CMPI_ULE);
}

MlirValue o3_scalar_select(const o3_scalar_t *in) {
  return o3_build_select(in->builder, in->args[0], in->args[1], in->args[2]);
}
