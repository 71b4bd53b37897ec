/* Scalar bodies of elementwise ops that take more than one op of arith or math. */
#ifndef O3_TARGET_REF_SCALAR_H
#define O3_TARGET_REF_SCALAR_H

#include "target/ref/lowering.h"

enum { O3_SCALAR_MAX_ARGS = 3 };

/* One application of an op to elements. */
typedef struct o3_scalar {
  o3_builder_t *builder;
  MlirOperation op;      /* old op: attributes and types */
  o3_number_kind_t kind; /* of the first operand */
  MlirType type;         /* old element type of the result */
  const MlirValue *args;
} o3_scalar_t;

/* The result; half-precision ones may still be f32. */
typedef MlirValue (*o3_scalar_fn_t)(const o3_scalar_t *in);

/* f32 for f16 and bf16, else the value itself; and back where |type| is half precision. */
MlirValue o3_scalar_widen(o3_builder_t *builder, MlirValue x);
MlirValue o3_scalar_narrow(o3_builder_t *builder, MlirValue x, MlirType type);
/* f32 for f16 and bf16, else |type|. */
MlirType o3_scalar_wide_type(MlirType type);

MlirValue o3_scalar_self(const o3_scalar_t *in); /* the argument */
MlirValue o3_scalar_neg(const o3_scalar_t *in);
MlirValue o3_scalar_sigmoid(const o3_scalar_t *in);
MlirValue o3_scalar_sign(const o3_scalar_t *in);
MlirValue o3_scalar_not(const o3_scalar_t *in);
MlirValue o3_scalar_is_nan(const o3_scalar_t *in);
MlirValue o3_scalar_is_inf(const o3_scalar_t *in);
MlirValue o3_scalar_cast(const o3_scalar_t *in);
MlirValue o3_scalar_bitcast(const o3_scalar_t *in);
/* Integers: x / 0, x mod 0 and x rem 0 are 0, as NumPy has it; the smallest integer / -1 wraps to itself. */
MlirValue o3_scalar_div(const o3_scalar_t *in);
MlirValue o3_scalar_mod(const o3_scalar_t *in);
MlirValue o3_scalar_rem(const o3_scalar_t *in);
/* a's type; b may have another. Integers to a negative power are towards zero. */
MlirValue o3_scalar_pow(const o3_scalar_t *in);
/* By the width or more: all bits are shifted out. */
MlirValue o3_scalar_shift(const o3_scalar_t *in);
MlirValue o3_scalar_equal(const o3_scalar_t *in);
MlirValue o3_scalar_less(const o3_scalar_t *in);
MlirValue o3_scalar_less_equal(const o3_scalar_t *in);
MlirValue o3_scalar_select(const o3_scalar_t *in);

#endif
