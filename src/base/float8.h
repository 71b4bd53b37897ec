/* 8-bit floats: one table (float8.def), and conversion of single numbers. */
#ifndef O3_BASE_FLOAT8_H
#define O3_BASE_FLOAT8_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

typedef struct o3_float8 {
  o3_dtype_id_t dtype;
  int fraction, bias; /* bits; of the exponent */
  double largest;     /* finite number */
  uint8_t top, beyond,
      not_a_number; /* codes: of |largest|, of numbers beyond when they do not saturate, of NaN */
  bool single;      /* one NaN, one zero */
} o3_float8_t;

/* The format of |dtype|; NULL when it is no 8-bit float. Static. */
const o3_float8_t *o3_float8(o3_dtype_id_t dtype);

/* Exact. */
float o3_float8_to_float(const o3_float8_t *format, uint8_t code);

/* To nearest, ties to even; what is beyond the range becomes infinity, or NaN where there is none. */
uint8_t o3_float8_from_float(const o3_float8_t *format, float value);

#endif
