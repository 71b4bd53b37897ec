/* Comparison in float64 for floats, in 64-bit integers for the rest: a double would lose the low bits
 * of int64. */
#include "tensorio/compare.h"

#include <math.h>
#include <string.h>

#include "tensorio/tensor.h"

/* One pair of elements. */
typedef struct difference {
  double got, expected;
  double error;  /* absolute */
  double excess; /* error minus what is allowed: positive outside the tolerance */
  uint64_t ulp;
} difference_t;

/* Maps a float's bits to integers in the order of the values, both zeros to the same one. */
static int64_t ordered(uint64_t bits, size_t size) {
  const uint64_t sign = UINT64_C(1) << (8 * size - 1), magnitude = bits & (sign - 1);
  return bits & sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

static uint64_t distance(int64_t a, int64_t b) {
  return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static void compare_floats(const o3_element_t *element, uint64_t got_bits, uint64_t expected_bits,
                           const o3_tolerance_t *tolerance, difference_t *d) {
  d->ulp = 0;
  d->error = 0;
  d->excess = -INFINITY;
  if (d->got == d->expected || (isnan(d->got) && isnan(d->expected))) return;
  if (!isnan(d->got) && !isnan(d->expected)) {
    d->ulp = distance(ordered(got_bits, element->size), ordered(expected_bits, element->size));
  }
  const bool finite = isfinite(d->got) && isfinite(d->expected);
  d->error = finite ? fabs(d->got - d->expected) : INFINITY;
  d->excess = finite ? d->error - (tolerance->atol + tolerance->rtol * fabs(d->expected)) : INFINITY;
}

static void compare_integers(const o3_element_t *element, uint64_t got, uint64_t expected,
                             const o3_tolerance_t *tolerance, difference_t *d) {
  const uint64_t allowed = element->kind == O3_ELEMENT_BOOL ? 0 : tolerance->int_atol;
  if (element->kind == O3_ELEMENT_SIGNED) {
    d->ulp = distance((int64_t)got, (int64_t)expected);
  } else {
    d->ulp = got > expected ? got - expected : expected - got;
  }
  d->error = (double)d->ulp;
  d->excess = d->ulp > allowed ? (double)(d->ulp - allowed) : -(double)(allowed - d->ulp);
  if (!d->ulp) d->excess = -INFINITY;
}

static void accumulate(o3_comparison_t *c, const difference_t *d, int64_t index, double *worst_excess) {
  if (!(d->excess <= 0)) ++c->outside; /* NaN is outside */
  if (d->error > c->max_abs) c->max_abs = d->error;
  if (d->ulp > c->max_ulp) c->max_ulp = d->ulp;
  if (d->error > 0 && d->expected != 0) {
    const double relative = isfinite(d->error) ? d->error / fabs(d->expected) : INFINITY;
    if (relative > c->max_rel) c->max_rel = relative;
  }
  if (d->excess <= *worst_excess) return;
  *worst_excess = d->excess;
  c->worst = index;
  c->worst_got = d->got;
  c->worst_expected = d->expected;
}

static void compare_elements(const o3_tensor_t *got, const o3_tensor_t *expected,
                             const o3_tolerance_t *tolerance, o3_comparison_t *c) {
  const o3_element_t *element = o3_tensorio_element_get((int32_t)got->dtype);
  void (*compare)(const o3_element_t *, uint64_t, uint64_t, const o3_tolerance_t *, difference_t *) =
      element->kind == O3_ELEMENT_FLOAT ? compare_floats : compare_integers;
  double worst_excess = -INFINITY;
  for (int64_t i = 0; i < c->count; ++i) {
    difference_t d = {.got = element->load(got->data, i), .expected = element->load(expected->data, i)};
    compare(element, element->bits(got->data, i), element->bits(expected->data, i), tolerance, &d);
    accumulate(c, &d, i, &worst_excess);
  }
}

o3_status_t o3_tensorio_compare(const o3_tensor_t *got, const o3_tensor_t *expected,
                                const o3_tolerance_t *tolerance, o3_comparison_t *comparison) {
  *comparison = (o3_comparison_t){.worst = -1};
  O3_TRY(o3_tensorio_measure(expected, NULL, NULL));
  int64_t count;
  O3_TRY(o3_tensorio_measure(got, &count, NULL));
  comparison->same_type = got->dtype == expected->dtype;
  comparison->same_shape = got->rank == expected->rank &&
                           !memcmp(got->shape, expected->shape, (size_t)got->rank * sizeof *got->shape);
  if (!comparison->same_type || !comparison->same_shape) return NULL;
  comparison->count = count;
  compare_elements(got, expected, tolerance, comparison);
  comparison->ok = comparison->outside == 0;
  return NULL;
}
