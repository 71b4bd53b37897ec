/* float16 against the compiler's _Float16, bfloat16 against the nearest of its neighbours. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensorio/half.h"

/* The conversions of libgcc and compiler-rt, an implementation that is not ours. */
static uint16_t reference_from_float(float value) {
  const _Float16 half = (_Float16)value;
  uint16_t bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

static float reference_to_float(uint16_t bits) {
  _Float16 half;
  memcpy(&half, &bits, sizeof half);
  return (float)half;
}

static void check_half(float value) {
  const uint16_t got = o3_half_from_float(value), want = reference_from_float(value);
  if (isnan(value)) {
    assert_true(isnan(o3_half_to_float(got)));
    assert_int_equal(got & 0x8200, (want & 0x8000) | 0x0200); /* sign kept, quiet */
  } else {
    assert_int_equal(got, want);
  }
}

static void test_half_round_trip(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
    const float value = o3_half_to_float((uint16_t)bits), want = reference_to_float((uint16_t)bits);
    if (isnan(want)) {
      assert_true(isnan(value));
      assert_int_equal(o3_half_from_float(value), bits | 0x0200);
    } else {
      assert_int_equal(o3_float_to_bits(value), o3_float_to_bits(want));
      assert_int_equal(o3_half_from_float(value), bits);
    }
  }
}

/* Each half, the midpoint to the next, and the floats around both: all ties and both sides of them. */
static void test_half_rounding(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = o3_half_to_float((uint16_t)bits);
    const double high = bits == 0x7bff ? 65536.0 : o3_half_to_float((uint16_t)(bits + 1));
    const float middle = (float)((low + high) / 2);
    const float values[] = {(float)low, middle, nextafterf(middle, 0), nextafterf(middle, INFINITY)};
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
      check_half(values[i]);
      check_half(-values[i]);
    }
  }
}

static void test_half_sweep(void **state) {
  (void)state;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099) check_half(o3_float_from_bits((uint32_t)bits));
  const float special[] = {0.0f,  -0.0f, INFINITY, -INFINITY, 65504,    65519.996f,
                           65520, 1e38f, 0x1p-24f, 0x1p-25f,  0x1p-149f};
  for (size_t i = 0; i < sizeof special / sizeof *special; ++i) check_half(special[i]);
}

/* The definition: the nearer of the two neighbours, the even one when both are as near. */
static uint16_t reference_bfloat(float value) {
  const uint32_t bits = o3_float_to_bits(value);
  const uint16_t low = (uint16_t)(bits >> 16);
  const uint32_t rest = bits & 0xffff;
  return rest > 0x8000 || (rest == 0x8000 && (low & 1)) ? (uint16_t)(low + 1) : low;
}

static void test_bfloat(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
    const float value = o3_bfloat_to_float((uint16_t)bits);
    assert_int_equal(o3_bfloat_from_float(value), isnan(value) ? (bits | 0x40) : bits);
  }
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1021) {
    const float value = o3_float_from_bits((uint32_t)bits);
    const uint16_t got = o3_bfloat_from_float(value);
    if (isnan(value)) {
      assert_true(isnan(o3_bfloat_to_float(got)));
    } else {
      assert_int_equal(got, reference_bfloat(value));
    }
  }
  assert_int_equal(o3_bfloat_from_float(3.4028235e38f), 0x7f80); /* rounds to infinity */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_half_round_trip),
      cmocka_unit_test(test_half_rounding),
      cmocka_unit_test(test_half_sweep),
      cmocka_unit_test(test_bfloat),
  };
  return cmocka_run_group_tests_name("tensorio_half", tests, NULL, NULL);
}
