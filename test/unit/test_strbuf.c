#include <string.h>

#include "base/fault.h"
#include "base/strbuf.h"
#include "unit.h"

static void pieces_are_joined(void **state) {
  (void)state;
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  o3_strbuf_puts(&buffer, "conv");
  o3_strbuf_append(&buffer, "_2d, rest", 3);
  o3_strbuf_printf(&buffer, "<%dx%d>", 3, 4);
  assert_string_equal(buffer.text, "conv_2d<3x4>");
  assert_int_equal(buffer.length, 12);
  assert_false(buffer.failed);
  o3_strbuf_deinit(&buffer);
  assert_null(buffer.text);
  assert_int_equal(buffer.capacity, 0);
}

static void nothing_is_terminated_too(void **state) {
  (void)state;
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  o3_strbuf_append(&buffer, NULL, 0);
  assert_string_equal(buffer.text, "");
  o3_strbuf_printf(&buffer, "%s", "");
  assert_int_equal(buffer.length, 0);
  o3_strbuf_deinit(&buffer);
  o3_strbuf_deinit(&buffer); /* a second time is harmless */
}

/* Every length around the growth steps, so that the NUL's own byte is not forgotten. */
static void every_length_fits(void **state) {
  (void)state;
  char text[300];
  memset(text, 'y', sizeof text);
  for (size_t length = 0; length < sizeof text; ++length) {
    o3_strbuf_t buffer = O3_STRBUF_INIT;
    o3_strbuf_append(&buffer, text, length);
    o3_strbuf_printf(&buffer, "%.*s", (int)length, text);
    assert_int_equal(strlen(buffer.text), 2 * length);
    o3_strbuf_deinit(&buffer);
  }
}

static void bytes_may_be_nul(void **state) {
  (void)state;
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  o3_strbuf_append(&buffer, "a\0b", 3);
  assert_int_equal(buffer.length, 3);
  assert_memory_equal(buffer.text, "a\0b", 4);
  o3_strbuf_deinit(&buffer);
}

static void large_texts(void **state) {
  (void)state;
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  for (int i = 0; i < 200000; ++i) o3_strbuf_puts(&buffer, "0123456789");
  assert_int_equal(buffer.length, 2000000);
  assert_memory_equal(buffer.text + 1999990, "0123456789", 11);
  o3_strbuf_deinit(&buffer);
}

static void lengths_that_overflow_fail(void **state) {
  (void)state;
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  o3_strbuf_puts(&buffer, "kept");
  o3_strbuf_append(&buffer, "x", SIZE_MAX);
  assert_true(buffer.failed);
  assert_string_equal(buffer.text, "kept");
  o3_strbuf_puts(&buffer, "no more after a failure");
  assert_string_equal(buffer.text, "kept");
  o3_strbuf_deinit(&buffer);
  o3_strbuf_append(&buffer, "x", SIZE_MAX / 2);
  assert_true(buffer.failed);
  o3_strbuf_deinit(&buffer);
}

static void running_out_fails(void **state) {
  (void)state;
  o3_strbuf_t buffer = O3_STRBUF_INIT;
  o3_fault_alloc_arm(1);
  o3_strbuf_printf(&buffer, "%d", 1);
  assert_true(buffer.failed);
  assert_null(buffer.text);
  o3_strbuf_deinit(&buffer);
  assert_false(buffer.failed);
  o3_fault_alloc_arm(0);
}

int main(void) {
  const struct CMUnitTest strbuf_tests[] = {
      cmocka_unit_test(pieces_are_joined), cmocka_unit_test(nothing_is_terminated_too),
      cmocka_unit_test(every_length_fits), cmocka_unit_test(bytes_may_be_nul),
      cmocka_unit_test(large_texts),       cmocka_unit_test(lengths_that_overflow_fail),
      cmocka_unit_test(running_out_fails),
  };
  return cmocka_run_group_tests(strbuf_tests, NULL, NULL);
}
