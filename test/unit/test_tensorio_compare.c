/* Comparison and random tensors. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensorio/compare.h"
#include "tensorio/half.h"
#include "tensorio/tensor.h"

static o3_tensor_t vector(o3_dtype_t dtype, void *data, int64_t count) {
  return (o3_tensor_t){.data = data, .dtype = dtype, .rank = 1, .shape = {count}};
}

static o3_comparison_t compare(o3_dtype_t dtype, void *got, void *expected, int64_t count,
                               o3_tolerance_t tolerance) {
  const o3_tensor_t a = vector(dtype, got, count), b = vector(dtype, expected, count);
  o3_comparison_t comparison;
  assert_null(o3_tensorio_compare(&a, &b, &tolerance, &comparison));
  assert_true(comparison.same_type && comparison.same_shape);
  assert_int_equal(comparison.count, count);
  return comparison;
}

static const o3_tolerance_t exact = {0};

static void test_floats(void **state) {
  (void)state;
  float got[] = {1, 2, NAN, INFINITY, -0.0f, 5}, expected[] = {1, 2.5f, NAN, INFINITY, 0.0f, 5};
  o3_comparison_t c = compare(O3_FLOAT32, got, expected, 6, O3_TOLERANCE_INIT);
  assert_false(c.ok);
  assert_int_equal(c.outside, 1);
  assert_int_equal(c.worst, 1);
  assert_true(c.max_abs == 0.5 && c.max_rel == 0.2 && c.worst_got == 2 && c.worst_expected == 2.5);
  assert_int_equal(c.max_ulp, 1 << 21);
  assert_true(compare(O3_FLOAT32, got, expected, 6, (o3_tolerance_t){.atol = 0.5}).ok);
  assert_true(compare(O3_FLOAT32, got, expected, 6, (o3_tolerance_t){.rtol = 0.2}).ok);
  assert_false(compare(O3_FLOAT32, got, expected, 6, (o3_tolerance_t){.rtol = 0.19, .atol = 1e-3}).ok);
}

/* A NaN, an infinity or an overflowing difference is outside whatever the tolerance. */
static void test_non_finite(void **state) {
  (void)state;
  const double pairs[][2] = {{NAN, 1},      {1, NAN},        {INFINITY, -INFINITY}, {INFINITY, 1},
                             {1, INFINITY}, {NAN, INFINITY}, {DBL_MAX, -DBL_MAX}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    double got = pairs[i][0], expected = pairs[i][1];
    const o3_comparison_t c = compare(O3_FLOAT64, &got, &expected, 1, (o3_tolerance_t){.rtol = 1, .atol = 1});
    assert_false(c.ok);
    assert_true(isinf(c.max_abs) && c.worst == 0);
  }
}

static void test_ulp(void **state) {
  (void)state;
  float a = nextafterf(0, -1), b = nextafterf(0, 1); /* two steps apart, across both zeros */
  assert_int_equal(compare(O3_FLOAT32, &a, &b, 1, exact).max_ulp, 2);
  double c = 1, d = 1 + DBL_EPSILON;
  assert_int_equal(compare(O3_FLOAT64, &c, &d, 1, exact).max_ulp, 1);
  uint16_t e = o3_half_from_float(2), f = (uint16_t)(e + 3);
  assert_int_equal(compare(O3_FLOAT16, &e, &f, 1, exact).max_ulp, 3);
  uint16_t g = 0x8001, h = 0x0001;
  assert_int_equal(compare(O3_BFLOAT16, &g, &h, 1, exact).max_ulp, 2);
  double least = -DBL_MAX, most = DBL_MAX;
  assert_true(compare(O3_FLOAT64, &least, &most, 1, exact).max_ulp == 2 * UINT64_C(0x7fefffffffffffff));
}

static void test_integers(void **state) {
  (void)state;
  int64_t got[] = {INT64_MAX, INT64_MIN, 7}, expected[] = {INT64_MAX - 1, INT64_MIN, 7};
  o3_comparison_t c = compare(O3_INT64, got, expected, 3, (o3_tolerance_t){.rtol = 1, .atol = 1e9});
  assert_false(c.ok); /* equal as doubles, and the tolerances of floats do not count */
  assert_int_equal(c.outside, 1);
  assert_int_equal(c.max_ulp, 1);
  assert_true(compare(O3_INT64, got, expected, 3, (o3_tolerance_t){.int_atol = 1}).ok);
  int64_t low = INT64_MIN, high = INT64_MAX;
  assert_true(compare(O3_INT64, &low, &high, 1, exact).max_ulp == UINT64_MAX);
  uint64_t zero = 0, most = UINT64_MAX;
  assert_true(compare(O3_UINT64, &zero, &most, 1, exact).max_ulp == UINT64_MAX);
  int8_t a[] = {-128, 127}, b[] = {-127, 127};
  assert_true(compare(O3_INT8, a, b, 2, (o3_tolerance_t){.int_atol = 1}).ok);
  assert_false(compare(O3_INT8, a, b, 2, exact).ok);
  uint8_t yes = 1, no = 0;
  assert_false(compare(O3_BOOL, &yes, &no, 1, (o3_tolerance_t){.int_atol = 1}).ok);
}

static void test_shapes(void **state) {
  (void)state;
  float data[6] = {0};
  o3_comparison_t c;
  const o3_tolerance_t tolerance = O3_TOLERANCE_INIT;
  const o3_tensor_t a = {data, O3_FLOAT32, 2, {2, 3}, O3_HOST}, b = {data, O3_FLOAT32, 2, {3, 2}, O3_HOST},
                    flat = {data, O3_FLOAT32, 1, {6}, O3_HOST};
  const o3_tensor_t other = {data, O3_INT32, 2, {2, 3}, O3_HOST},
                    empty = {data, O3_FLOAT32, 2, {0, 3}, O3_HOST};
  assert_null(o3_tensorio_compare(&a, &b, &tolerance, &c));
  assert_true(!c.ok && c.same_type && !c.same_shape);
  assert_null(o3_tensorio_compare(&a, &flat, &tolerance, &c));
  assert_true(!c.ok && !c.same_shape);
  assert_null(o3_tensorio_compare(&a, &other, &tolerance, &c));
  assert_true(!c.ok && !c.same_type && c.same_shape);
  assert_null(o3_tensorio_compare(&empty, &empty, &tolerance, &c));
  assert_true(c.ok && c.count == 0 && c.worst == -1);
  const o3_tensor_t bad = {data, O3_FLOAT32, 17, {1}, O3_HOST};
  o3_status_t status = o3_tensorio_compare(&bad, &bad, &tolerance, &c);
  assert_string_equal(o3_status_message(status), "rank is 17, at most 16 is supported");
  o3_status_destroy(status);
}

static void test_random(void **state) {
  (void)state;
  float a[4096], b[4096];
  const o3_tensor_t first = vector(O3_FLOAT32, a, 4096), second = vector(O3_FLOAT32, b, 4096);
  o3_tensorio_random_fill(&first, 7, 0, 9);
  o3_tensorio_random_fill(&second, 7, 0, 9);
  assert_memory_equal(a, b, sizeof a);
  o3_tensorio_random_fill(&second, 8, 0, 9);
  assert_memory_not_equal(a, b, sizeof a);
  double sum = 0, squares = 0;
  for (int i = 0; i < 4096; ++i) sum += a[i], squares += (double)a[i] * a[i];
  assert_true(fabs(sum / 4096) < 0.08 && fabs(squares / 4096 - 1) < 0.12); /* five standard errors */
}

/* Integers stay within both the bounds and the type; every value of a small range comes. */
static void test_random_integers(void **state) {
  (void)state;
  uint8_t bytes[1000];
  unsigned seen = 0;
  const o3_tensor_t small = vector(O3_UINT8, bytes, 1000);
  o3_tensorio_random_fill(&small, 1, -3, 4);
  for (int i = 0; i < 1000; ++i) seen |= 1u << bytes[i];
  assert_int_equal(seen, 0x1f);
  int8_t narrow[1000];
  const o3_tensor_t clamped = vector(O3_INT8, narrow, 1000);
  o3_tensorio_random_fill(&clamped, 1, 100, 100000);
  for (int i = 0; i < 1000; ++i) assert_in_range(narrow[i], 100, 127);
  o3_tensor_t flags = vector(O3_BOOL, bytes, 1000);
  o3_tensorio_random_fill(&flags, 1, 5, 9);
  assert_null(o3_tensorio_bools_check(&flags));
  assert_non_null(memchr(bytes, 0, sizeof bytes));
  assert_non_null(memchr(bytes, 1, sizeof bytes));
  int64_t wide[100];
  const o3_tensor_t all = vector(O3_INT64, wide, 100);
  o3_tensorio_random_fill(&all, 1, INT64_MIN, INT64_MAX);
  for (int i = 0; i < 100; ++i) assert_true(wide[i] >= -(INT64_C(1) << 52) && wide[i] < INT64_C(1) << 52);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_floats),
      cmocka_unit_test(test_non_finite),
      cmocka_unit_test(test_ulp),
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_random_integers),
  };
  return cmocka_run_group_tests_name("tensorio_compare", tests, NULL, NULL);
}
