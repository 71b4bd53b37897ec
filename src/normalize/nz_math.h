/* Arithmetic on values of the normalizer, so that converters read like the formulas of ONNX's documentation.
 * A `number` becomes a scalar of the other operand's element type. */
#ifndef O3_NORMALIZE_NZ_MATH_H
#define O3_NORMALIZE_NZ_MATH_H

#include "normalize/nz.h"

static inline MlirValue o3_nz_add(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.add", a, b);
}
static inline MlirValue o3_nz_sub(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.sub", a, b);
}
static inline MlirValue o3_nz_mul(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.mul", a, b);
}
static inline MlirValue o3_nz_div(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.div", a, b);
}
static inline MlirValue o3_nz_max(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.max", a, b);
}
static inline MlirValue o3_nz_min(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.min", a, b);
}

static inline MlirValue o3_nz_add_number(o3_nz_t *nz, MlirValue x, double number) {
  return o3_nz_add(nz, x, o3_nz_like(nz, x, number));
}
static inline MlirValue o3_nz_mul_number(o3_nz_t *nz, MlirValue x, double number) {
  return o3_nz_mul(nz, x, o3_nz_like(nz, x, number));
}
/* Integers: the remainder that is never negative, for number > 0. */
static inline MlirValue o3_nz_mod_number(o3_nz_t *nz, MlirValue x, double number) {
  return o3_nz_binary(nz, "o3.mod", x, o3_nz_like(nz, x, number));
}

/* i1: a < b, a == b, !a. */
static inline MlirValue o3_nz_less(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.less", a, b);
}
static inline MlirValue o3_nz_equal(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_binary(nz, "o3.equal", a, b);
}
static inline MlirValue o3_nz_not(o3_nz_t *nz, MlirValue a) { return o3_nz_unary(nz, "o3.not", a); }

#endif
