#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "unit.h"

static int disarm(void **state) {
  (void)state;
  o3_fault_alloc_arm(0);
  return 0;
}

static void success_is_null(void **state) {
  (void)state;
  assert_int_equal(o3_status_code(NULL), O3_STATUS_OK);
  assert_string_equal(o3_status_message(NULL), "");
  assert_null(o3_status_annotate(NULL, "node '%s'", "Add_1"));
  assert_null(o3_status_join(NULL, NULL));
  o3_status_destroy(NULL);
}

static void message_is_formatted(void **state) {
  (void)state;
  o3_status_t status = o3_status_create(O3_STATUS_INVALID_MODEL, "rank %d, at least %d expected", 2, 3);
  assert_int_equal(o3_status_code(status), O3_STATUS_INVALID_MODEL);
  assert_string_equal(o3_status_message(status), "rank 2, at least 3 expected");
  o3_status_destroy(status);
}

static void empty_message(void **state) {
  (void)state;
  o3_status_t status = o3_status_create(O3_STATUS_IO, "%s", "");
  assert_string_equal(o3_status_message(status), "");
  status = o3_status_annotate(status, "%s", "");
  assert_string_equal(o3_status_message(status), ": ");
  o3_status_destroy(status);
}

static void context_comes_first(void **state) {
  (void)state;
  o3_status_t status = o3_status_create(O3_STATUS_UNSUPPORTED, "op 'Foo'");
  status = o3_status_annotate(status, "node '%s'", "100%d");
  status = o3_status_annotate(status, "model.onnx");
  assert_string_equal(o3_status_message(status), "model.onnx: node '100%d': op 'Foo'");
  assert_int_equal(o3_status_code(status), O3_STATUS_UNSUPPORTED);
  o3_status_destroy(status);
}

static void join_keeps_the_first_code(void **state) {
  (void)state;
  o3_status_t first = o3_status_create(O3_STATUS_IO, "disk full");
  o3_status_t second = o3_status_create(O3_STATUS_INTERNAL, "cleanup failed");
  first = o3_status_join(o3_status_join(NULL, first), NULL);
  first = o3_status_join(first, second);
  assert_int_equal(o3_status_code(first), O3_STATUS_IO);
  assert_string_equal(o3_status_message(first), "disk full; cleanup failed");
  o3_status_destroy(first);
}

static void long_messages_are_whole(void **state) {
  (void)state;
  enum { LENGTH = 1 << 20 };
  char *text = malloc(LENGTH + 1);
  assert_non_null(text);
  memset(text, 'x', LENGTH);
  text[LENGTH] = '\0';
  o3_status_t status = o3_status_annotate(o3_status_create(O3_STATUS_IO, "%s", text), "%s", text);
  assert_int_equal(strlen(o3_status_message(status)), 2 * LENGTH + 2);
  o3_status_destroy(status);
  free(text);
}

static void codes_have_names(void **state) {
  (void)state;
  assert_string_equal(o3_status_code_name(O3_STATUS_OK), "ok");
  assert_string_equal(o3_status_code_name(O3_STATUS_INVALID_MODEL), "invalid model");
  assert_string_equal(o3_status_code_name(O3_STATUS_INTERNAL), "internal error");
  assert_string_equal(o3_status_code_name((o3_status_code_t)1000), "unknown status code");
  assert_string_equal(o3_status_code_name((o3_status_code_t)-1), "unknown status code");
}

static void creating_without_memory(void **state) {
  (void)state;
  o3_fault_alloc_arm(1);
  o3_status_t status = o3_status_create(O3_STATUS_IO, "disk full");
  assert_int_equal(o3_status_code(status), O3_STATUS_OUT_OF_MEMORY);
  assert_string_equal(o3_status_message(status), "out of memory");
  o3_status_destroy(status); /* a static one: nothing happens, and it stays usable */
  assert_string_equal(o3_status_message(status), "out of memory");
}

static void annotating_without_memory_keeps_the_cause(void **state) {
  (void)state;
  o3_status_t status = o3_status_create(O3_STATUS_IO, "disk full");
  o3_fault_alloc_arm(1);
  status = o3_status_annotate(status, "output");
  assert_string_equal(o3_status_message(status), "disk full");
  o3_fault_alloc_arm(1);
  status = o3_status_join(status, NULL);
  o3_fault_alloc_arm(2);
  status = o3_status_join(status, o3_status_create(O3_STATUS_IO, "again"));
  assert_string_equal(o3_status_message(status), "disk full");
  o3_status_destroy(status);
}

static void static_status_can_be_annotated(void **state) {
  (void)state;
  o3_fault_alloc_arm(1);
  o3_status_t status = o3_status_annotate(o3_status_create(O3_STATUS_IO, "disk full"), "arena");
  assert_string_equal(o3_status_message(status), "arena: out of memory");
  o3_status_destroy(status);
}

static o3_status_t fail_if(int yes) { return yes ? o3_status_create(O3_STATUS_IO, "no") : NULL; }

static o3_status_t try_both(int first, int second) {
  O3_TRY(fail_if(first));
  O3_TRY_CONTEXT(fail_if(second), "step %d", 2);
  return NULL;
}

static void try_leaves_at_the_first_failure(void **state) {
  (void)state;
  assert_ok(try_both(0, 0));
  assert_string_equal(unit_take_message(try_both(1, 1)), "no");
  assert_string_equal(unit_take_message(try_both(0, 1)), "step 2: no");
}

int main(void) {
  const struct CMUnitTest status_tests[] = {
      cmocka_unit_test(success_is_null),
      cmocka_unit_test(message_is_formatted),
      cmocka_unit_test(empty_message),
      cmocka_unit_test(context_comes_first),
      cmocka_unit_test(join_keeps_the_first_code),
      cmocka_unit_test(long_messages_are_whole),
      cmocka_unit_test(codes_have_names),
      cmocka_unit_test_teardown(creating_without_memory, disarm),
      cmocka_unit_test_teardown(annotating_without_memory_keeps_the_cause, disarm),
      cmocka_unit_test_teardown(static_status_can_be_annotated, disarm),
      cmocka_unit_test(try_leaves_at_the_first_failure),
  };
  return cmocka_run_group_tests(status_tests, NULL, NULL);
}
