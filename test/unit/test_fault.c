#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fault.h"
#include "unit.h"

static int disarm(void **state) {
  (void)state;
  o3_fault_alloc_arm(0);
  return 0;
}

static void only_the_nth_fails(void **state) {
  (void)state;
  o3_fault_alloc_arm(3);
  for (int i = 1; i <= 6; ++i) {
    assert_int_equal(o3_fault_alloc_should_fail(), i == 3);
    assert_int_equal(o3_fault_alloc_has_failed(), i >= 3);
  }
}

static void arming_again_starts_again(void **state) {
  (void)state;
  o3_fault_alloc_arm(1);
  assert_true(o3_fault_alloc_should_fail());
  o3_fault_alloc_arm(1);
  assert_false(o3_fault_alloc_has_failed());
  o3_fault_alloc_arm(0);
  assert_false(o3_fault_alloc_should_fail());
  o3_fault_alloc_arm(UINT64_MAX);
  assert_false(o3_fault_alloc_should_fail());
}

static void allocators_obey(void **state) {
  (void)state;
  o3_fault_alloc_arm(1);
  assert_null(o3_fault_malloc(8));
  char *memory = o3_fault_malloc(8);
  assert_non_null(memory);
  strcpy(memory, "kept");
  o3_fault_alloc_arm(1);
  assert_null(o3_fault_realloc(memory, 1 << 20));
  assert_string_equal(memory, "kept"); /* a realloc that fails leaves the old block */
  free(memory);
  o3_fault_alloc_arm(1);
  assert_null(o3_fault_calloc(2, 8));
  assert_null(o3_fault_calloc(SIZE_MAX, 2));
}

/* Runs itself with O3_FAULT_ALLOC=|value|; the number of the allocation that fails, 0 if none does. */
static int failing_with(const char *value) {
  char self[512];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  pid_t child = fork();
  if (child == 0) {
    setenv("O3_FAULT_ALLOC", value, 1);
    execl(self, self, "--count", (char *)NULL);
    _exit(127);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int count_until_failure(void) {
  for (int i = 1; i <= 10; ++i)
    if (o3_fault_alloc_should_fail()) return i;
  return 0;
}

static void environment_arms(void **state) {
  (void)state;
  assert_int_equal(failing_with("4"), 4);
  assert_int_equal(failing_with("0"), 0);
  assert_int_equal(failing_with("many"), 0); /* warned about */
  assert_int_equal(failing_with("99999999999999999999"), 0);
}

/* A failing assertion says where and what, and ends by SIGABRT. */
static void assertions_abort(void **state) {
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    signal(SIGABRT, SIG_DFL);
    O3_ASSERT(ends[0] == 0 && ends[0] == 1, "no number is two");
    _exit(0);
  }
  close(ends[1]);
  char text[512] = "";
  assert_true(read(ends[0], text, sizeof text - 1) > 0);
  close(ends[0]);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGABRT);
  unit_assert_contains(text, "test_fault.c");
  unit_assert_contains(text, "'ends[0] == 0 && ends[0] == 1' failed: no number is two");
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--count")) return count_until_failure();
  const struct CMUnitTest fault_tests[] = {
      cmocka_unit_test_teardown(only_the_nth_fails, disarm),
      cmocka_unit_test_teardown(arming_again_starts_again, disarm),
      cmocka_unit_test_teardown(allocators_obey, disarm),
      cmocka_unit_test(environment_arms),
      cmocka_unit_test(assertions_abort),
  };
  return cmocka_run_group_tests(fault_tests, NULL, NULL);
}
