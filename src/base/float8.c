/* Single numbers, for files and comparisons: by powers of two, as the formats are defined. */
#include "base/float8.h"

#include <math.h>
#include <stddef.h>

static const o3_float8_t formats[] = {
#define O3_FLOAT8(id, fraction, bias, largest, top, beyond, nan, single) \
  {O3_DTYPE_##id, fraction, bias, largest, top, beyond, nan, single},
#include "base/float8.def"
#undef O3_FLOAT8
};

const o3_float8_t *o3_float8(o3_dtype_id_t dtype) {
  for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); ++i)
    if (formats[i].dtype == dtype) return &formats[i];
  return NULL;
}

static bool is_nan(const o3_float8_t *f, uint8_t code) {
  if (f->single) return code == f->not_a_number;
  return (code & 0x7F) > f->top && ((code & 0x7F) > f->beyond || f->beyond == f->not_a_number);
}

float o3_float8_to_float(const o3_float8_t *f, uint8_t code) {
  int magnitude = code & 0x7F, ones = 1 << f->fraction;
  int exponent = magnitude >> f->fraction, fraction = magnitude & (ones - 1);
  if (is_nan(f, code)) return NAN;
  float size = exponent ? ldexpf((float)(ones + fraction), exponent - f->bias - f->fraction)
                        : ldexpf((float)fraction, 1 - f->bias - f->fraction);
  if (magnitude > f->top) size = INFINITY;
  return code & 0x80 ? -size : size;
}

/* In units of the last place, which nearbyint() rounds to even. */
uint8_t o3_float8_from_float(const o3_float8_t *f, float value) {
  uint8_t sign = signbit(value) ? 0x80 : 0;
  int exponent;
  if (isnan(value)) return (uint8_t)(sign | f->not_a_number);
  if (isinf(value)) return (uint8_t)(sign | f->beyond);
  (void)frexpf(value, &exponent);
  if (value == 0 || exponent < 2 - f->bias) exponent = 2 - f->bias; /* that of the least normal number */
  int units = (int)nearbyintf(ldexpf(fabsf(value), f->fraction + 1 - exponent));
  int code = units + ((exponent + f->bias - 2) << f->fraction);
  if (code > f->top) code = f->beyond;
  return (uint8_t)(f->single && code == 0 ? 0 : sign | code);
}
