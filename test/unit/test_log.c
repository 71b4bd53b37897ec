#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "unit.h"

static int saved_stderr;
static FILE *captured;

/* Sends stderr into a file, which captured_text reads. */
static int capture(void **state) {
  (void)state;
  fflush(stderr);
  captured = tmpfile();
  saved_stderr = dup(2);
  return captured && dup2(fileno(captured), 2) == 2 ? 0 : -1;
}

static int release(void **state) {
  (void)state;
  fflush(stderr);
  dup2(saved_stderr, 2);
  close(saved_stderr);
  fclose(captured);
  o3_log_level_set(O3_LOG_WARNING);
  o3_log_program_set("o3");
  return 0;
}

static const char *captured_text(void) {
  static char text[1 << 16];
  fflush(stderr);
  rewind(captured);
  text[fread(text, 1, sizeof text - 1, captured)] = '\0';
  return text;
}

static void lines_name_program_and_level(void **state) {
  (void)state;
  o3_log(O3_LOG_WARNING, "%d of %d weights", 3, 4);
  o3_log_program_set("o3c");
  o3_log(O3_LOG_ERROR, "%s", "100%d");
  assert_string_equal(captured_text(), "o3: warning: 3 of 4 weights\no3c: error: 100%d\n");
}

static void levels_beyond_are_dropped(void **state) {
  (void)state;
  o3_log(O3_LOG_NOTE, "dropped");
  o3_log_level_set(O3_LOG_DEBUG);
  o3_log(O3_LOG_DEBUG, "kept");
  o3_log_level_set(O3_LOG_ERROR);
  o3_log(O3_LOG_WARNING, "dropped");
  assert_string_equal(captured_text(), "o3: debug: kept\n");
}

static void long_lines_are_whole(void **state) {
  (void)state;
  o3_log(O3_LOG_ERROR, "%050000d", 1);
  assert_int_equal(strlen(captured_text()), strlen("o3: error: ") + 50000 + 1);
}

static void statuses_show_their_code(void **state) {
  (void)state;
  o3_log_status(NULL);
  o3_log_status(o3_status_create(O3_STATUS_NOT_FOUND, "no '%s'", "x.onnx"));
  assert_string_equal(captured_text(), "o3: error: not found: no 'x.onnx'\n");
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, capture, release)

int main(void) {
  const struct CMUnitTest log_tests[] = {
      LOG_TEST(lines_name_program_and_level),
      LOG_TEST(levels_beyond_are_dropped),
      LOG_TEST(long_lines_are_whole),
      LOG_TEST(statuses_show_their_code),
  };
  return cmocka_run_group_tests(log_tests, NULL, NULL);
}
