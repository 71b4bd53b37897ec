/* 8-bit floats: every code against the definition of its format, and rounding against the nearest code. */
#include "base/float8.h"

#include <math.h>

#include "unit.h"

static const o3_dtype_id_t FORMATS[] = {O3_DTYPE_F8E4M3FN, O3_DTYPE_F8E4M3FNUZ, O3_DTYPE_F8E5M2,
                                        O3_DTYPE_F8E5M2FNUZ};
enum { NUM_FORMATS = 4, CODES = 256 };

static void test_known_codes(void **state) {
  (void)state;
  static const struct {
    o3_dtype_id_t dtype;
    uint8_t code;
    float value;
  } KNOWN[] = {{O3_DTYPE_F8E4M3FN, 0x7E, 448},        {O3_DTYPE_F8E4M3FN, 0x81, -0x1p-9F},
               {O3_DTYPE_F8E4M3FN, 0x38, 1},          {O3_DTYPE_F8E4M3FNUZ, 0x7F, 240},
               {O3_DTYPE_F8E4M3FNUZ, 0x01, 0x1p-10F}, {O3_DTYPE_F8E5M2, 0x7B, 57344},
               {O3_DTYPE_F8E5M2, 0xFC, -INFINITY},    {O3_DTYPE_F8E5M2, 0x01, 0x1p-16F},
               {O3_DTYPE_F8E5M2FNUZ, 0xFF, -57344},   {O3_DTYPE_F8E5M2FNUZ, 0x01, 0x1p-17F}};
  for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); ++i) {
    const o3_float8_t *format = o3_float8(KNOWN[i].dtype);
    assert_true(o3_float8_to_float(format, KNOWN[i].code) == KNOWN[i].value);
    assert_int_equal(o3_float8_from_float(format, KNOWN[i].value), KNOWN[i].code);
  }
  assert_null(o3_float8(O3_DTYPE_F16));
}

/* NaNs: two, or six of e5m2, or one. */
static void test_codes_round_trip(void **state) {
  (void)state;
  static const int NANS[] = {2, 1, 6, 1};
  for (int i = 0; i < NUM_FORMATS; ++i) {
    const o3_float8_t *format = o3_float8(FORMATS[i]);
    int nans = 0;
    for (int code = 0; code < CODES; ++code) {
      float value = o3_float8_to_float(format, (uint8_t)code);
      if (isnan(value)) {
        ++nans;
        assert_true(isnan(o3_float8_to_float(format, o3_float8_from_float(format, value))));
      } else {
        assert_int_equal(o3_float8_from_float(format, value), code);
      }
    }
    assert_int_equal(nans, NANS[i]);
    assert_true((double)o3_float8_to_float(format, format->top) == format->largest);
  }
}

/* Halfway between neighbours goes to the even code, a little beside it to the nearer one. */
static void test_rounding(void **state) {
  (void)state;
  for (int i = 0; i < NUM_FORMATS; ++i) {
    const o3_float8_t *format = o3_float8(FORMATS[i]);
    for (int code = 0; code < format->top; ++code) {
      float low = o3_float8_to_float(format, (uint8_t)code),
            high = o3_float8_to_float(format, (uint8_t)(code + 1));
      float middle = (low + high) / 2;
      assert_int_equal(o3_float8_from_float(format, middle), code + (code & 1));
      assert_int_equal(o3_float8_from_float(format, nextafterf(middle, 0)), code);
      assert_int_equal(o3_float8_from_float(format, nextafterf(middle, INFINITY)), code + 1);
    }
    float last = o3_float8_to_float(format, format->top),
          before = o3_float8_to_float(format, format->top - 1);
    float end = last + (last - before) / 2;
    assert_int_equal(o3_float8_from_float(format, nextafterf(end, 0)), format->top);
    assert_int_equal(o3_float8_from_float(format, nextafterf(end, INFINITY)), format->beyond);
    assert_int_equal(o3_float8_from_float(format, INFINITY), format->beyond);
    assert_int_equal(o3_float8_from_float(format, -0.0F), format->single ? 0 : 0x80);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_codes),
      cmocka_unit_test(test_codes_round_trip),
      cmocka_unit_test(test_rounding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
