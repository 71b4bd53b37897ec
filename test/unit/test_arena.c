#include <string.h>

#include "base/arena.h"
#include "base/fault.h"
#include "unit.h"

static int create(void **state) { return (*state = o3_arena_create()) ? 0 : -1; }

static int destroy(void **state) {
  o3_fault_alloc_arm(0);
  o3_arena_destroy(*state);
  return 0;
}

static void memory_is_zeroed_and_aligned(void **state) {
  for (size_t size = 1; size < 300; ++size) {
    unsigned char *memory = o3_arena_alloc(*state, 1, size);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 16, 0);
    for (size_t i = 0; i < size; ++i) assert_int_equal(memory[i], 0);
    memset(memory, 0xff, size);
  }
}

static void blocks_do_not_overlap(void **state) {
  enum { COUNT = 5000 };
  uint64_t *items[COUNT];
  for (uint64_t i = 0; i < COUNT; ++i) {
    /* A few are larger than a block, so that both roads are mixed. */
    items[i] = O3_ARENA_ARRAY(*state, uint64_t, i % 1000 == 7 ? 300000 : 1 + i % 5);
    assert_non_null(items[i]);
    *items[i] = i;
  }
  for (uint64_t i = 0; i < COUNT; ++i) assert_int_equal(*items[i], i);
}

static void nothing_has_an_address_of_its_own(void **state) {
  void *first = o3_arena_alloc(*state, 0, 8), *second = o3_arena_alloc(*state, 8, 0);
  assert_non_null(first);
  assert_non_null(second);
  assert_ptr_not_equal(first, second);
}

static void sizes_that_overflow_give_null(void **state) {
  assert_null(o3_arena_alloc(*state, SIZE_MAX, 2));
  assert_null(o3_arena_alloc(*state, SIZE_MAX / 2 + 1, 2));
  assert_null(o3_arena_alloc(*state, 1, SIZE_MAX));
  assert_null(o3_arena_alloc(*state, 1, SIZE_MAX - 16));
  assert_null(o3_arena_alloc(*state, 1, SIZE_MAX - 48));
  assert_null(o3_arena_strndup(*state, "x", SIZE_MAX));
  assert_non_null(o3_arena_alloc(*state, 1, 8)); /* and the arena is still good */
}

static void strings_are_copied(void **state) {
  char text[] = "weights";
  char *copy = o3_arena_strdup(*state, text);
  char *part = o3_arena_strndup(*state, text, 3);
  text[0] = 'X';
  assert_string_equal(copy, "weights");
  assert_string_equal(part, "wei");
  assert_string_equal(o3_arena_strndup(*state, NULL, 0), "");
  char with_nul[] = {'a', '\0', 'b'};
  assert_memory_equal(o3_arena_strndup(*state, with_nul, 3), "a\0b", 4);
}

static void strings_are_formatted(void **state) {
  assert_string_equal(o3_arena_printf(*state, "%s_%d", "Conv", 7), "Conv_7");
  assert_string_equal(o3_arena_printf(*state, "%s", ""), "");
  char *wide = o3_arena_printf(*state, "%100000d", 1);
  assert_int_equal(strlen(wide), 100000);
}

static void first_allocation_may_be_large(void **state) {
  memset(o3_arena_alloc(*state, 1, 1 << 22), 1, 1 << 22);
  char *small = o3_arena_alloc(*state, 1, 16);
  assert_int_equal(small[0], 0);
}

static void running_out_gives_null(void **state) {
  o3_fault_alloc_arm(1);
  assert_null(o3_arena_alloc(*state, 1, 16));
  assert_non_null(o3_arena_alloc(*state, 1, 16));
  o3_fault_alloc_arm(1);
  assert_null(o3_arena_alloc(*state, 1, 1 << 22));
}

static o3_status_t needs_memory(void *memory) {
  O3_TRY_ALLOC(memory);
  return NULL;
}

static void try_alloc_reports(void **state) {
  assert_fails(needs_memory(NULL), O3_STATUS_OUT_OF_MEMORY, "out of memory");
  assert_ok(needs_memory(*state));
}

static void creation_may_fail(void **state) {
  (void)state;
  o3_fault_alloc_arm(1);
  assert_null(o3_arena_create());
  o3_arena_destroy(NULL);
}

#define ARENA_TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void) {
  const struct CMUnitTest arena_tests[] = {
      ARENA_TEST(memory_is_zeroed_and_aligned),
      ARENA_TEST(blocks_do_not_overlap),
      ARENA_TEST(nothing_has_an_address_of_its_own),
      ARENA_TEST(sizes_that_overflow_give_null),
      ARENA_TEST(strings_are_copied),
      ARENA_TEST(strings_are_formatted),
      ARENA_TEST(first_allocation_may_be_large),
      ARENA_TEST(running_out_gives_null),
      ARENA_TEST(try_alloc_reports),
      ARENA_TEST(creation_may_fail),
  };
  return cmocka_run_group_tests(arena_tests, NULL, NULL);
}
