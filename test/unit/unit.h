/* What every unit test includes: cmocka, with the headers that it needs before it. */
#ifndef O3_TEST_UNIT_H
#define O3_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"

#define assert_ok(expr) assert_string_equal(unit_take_message(expr), "")

/* Asserts that |expr| fails with |code| and that its message has |text| in it. */
#define assert_fails(expr, code, text)                          \
  do {                                                          \
    o3_status_t unit_status = (expr);                           \
    assert_int_equal(o3_status_code(unit_status), code);        \
    unit_assert_contains(o3_status_message(unit_status), text); \
    o3_status_destroy(unit_status);                             \
  } while (0)

/* The message of |status|, which is destroyed; valid until the next call. "" for success. */
const char *unit_take_message(o3_status_t status);

/* Fails the test, showing both, when |text| has no |part| in it. */
void unit_assert_contains(const char *text, const char *part);

#endif
