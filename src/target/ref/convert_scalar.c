/* Conversion of one number between element types. */
#include "target/ref/lowering.h"

static MlirValue int_to_float(o3_builder_t *b, MlirValue x, o3_number_kind_t kind, MlirType to) {
  return o3_build1(b, kind == O3_NUMBER_SIGNED ? "arith.sitofp" : "arith.uitofp", to, O3_VALUES(x));
}

static MlirValue float_to_float(o3_builder_t *b, MlirValue x, MlirType to) {
  int from_bits = o3_type_bits(mlirValueGetType(x)), to_bits = o3_type_bits(to);
  if (from_bits == to_bits) { /* f16 <-> bf16: through f32 */
    MlirValue wide = o3_build1(b, "arith.extf", mlirF32TypeGet(b->context), O3_VALUES(x));
    return o3_build1(b, "arith.truncf", to, O3_VALUES(wide));
  }
  return o3_build1(b, from_bits < to_bits ? "arith.extf" : "arith.truncf", to, O3_VALUES(x));
}

/* Out of range is undefined for the plain conversion: go through 64 bits with the bounds clamped, as C compilers'
 * targets do in practice, and cut off the rest. NaN gives 0. */
static MlirValue float_to_int(o3_builder_t *b, MlirValue x, o3_number_kind_t kind, MlirType to) {
  MlirType f = mlirValueGetType(x), i64 = mlirIntegerTypeGet(b->context, 64);
  if (o3_type_bits(f) < 32) {
    f = mlirF32TypeGet(b->context);
    x = o3_build1(b, "arith.extf", f, O3_VALUES(x));
  }
  bool wide_unsigned = kind == O3_NUMBER_UNSIGNED && o3_type_bits(to) == 64;
  double low = wide_unsigned ? 0 : -0x1p63, high = wide_unsigned ? 0x1.fffffep63 : 0x1.fffffep62;
  MlirValue nan = o3_build_cmpf(b, O3_CMPF_UNO, x, x);
  MlirValue clean = o3_build_select(b, nan, o3_build_float(b, f, 0), x);
  MlirValue above = o3_build2(b, "arith.maximumf", clean, o3_build_float(b, f, low));
  MlirValue inside = o3_build2(b, "arith.minimumf", above, o3_build_float(b, f, high));
  MlirValue wide = o3_build1(b, wide_unsigned ? "arith.fptoui" : "arith.fptosi", i64, O3_VALUES(inside));
  return o3_type_bits(to) == 64 ? wide : o3_build1(b, "arith.trunci", to, O3_VALUES(wide));
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

MlirValue o3_lw_convert(o3_builder_t *b, MlirValue x, MlirType from, MlirType to) {
  if (mlirTypeEqual(from, to)) return x;
  o3_number_kind_t kind = o3_number_kind(from);
  MlirType target = o3_lw_type(to);
  if (o3_type_is_bool(to)) return to_bool(b, x, kind == O3_NUMBER_FLOAT);
  if (o3_type_is_float(to)) return kind == O3_NUMBER_FLOAT ? float_to_float(b, x, target) : int_to_float(b, x, kind, target);
  return kind == O3_NUMBER_FLOAT ? float_to_int(b, x, o3_number_kind(to), target) : int_to_int(b, x, kind, target);
}
