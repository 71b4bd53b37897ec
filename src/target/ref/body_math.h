/* Arithmetic inside of bodies that compute positions: floats of one type, and indices. */
#ifndef O3_TARGET_REF_BODY_MATH_H
#define O3_TARGET_REF_BODY_MATH_H

#include "target/ref/lowering.h"

static inline MlirValue o3_addf(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.addf", x, y);
}
static inline MlirValue o3_subf(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.subf", x, y);
}
static inline MlirValue o3_mulf(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.mulf", x, y);
}
static inline MlirValue o3_divf(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.divf", x, y);
}
static inline MlirValue o3_maxf(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.maximumf", x, y);
}
static inline MlirValue o3_minf(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.minimumf", x, y);
}
/* The number |value| in the type of |x|. */
static inline MlirValue o3_number_like(o3_builder_t *b, MlirValue x, double value) {
  return o3_build_number(b, mlirValueGetType(x), value);
}
static inline MlirValue o3_addf_number(o3_builder_t *b, MlirValue x, double y) {
  return o3_addf(b, x, o3_number_like(b, x, y));
}
static inline MlirValue o3_mulf_number(o3_builder_t *b, MlirValue x, double y) {
  return o3_mulf(b, x, o3_number_like(b, x, y));
}
static inline MlirValue o3_floorf(o3_builder_t *b, MlirValue x) { return o3_build_unary(b, "math.floor", x); }

/* index -> float, float (whole; saturating) -> index. */
MlirValue o3_index_to_float(o3_builder_t *b, MlirValue index, MlirType type);
MlirValue o3_float_to_index(o3_builder_t *b, MlirValue x);
/* |index| moved into 0 .. size - 1. */
MlirValue o3_index_clamp(o3_builder_t *b, MlirValue index, MlirValue size);
/* i1: both hold, or either. */
static inline MlirValue o3_both(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.andi", x, y);
}
static inline MlirValue o3_either(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.ori", x, y);
}

#endif
