/* The packing of buffers: nothing that lives together overlaps, and little is wasted. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "target/cpu/pack_intervals.h"
#include "unit.h"

static void check_no_overlap(const o3_interval_t *it, int count, int64_t total) {
  for (int i = 0; i < count; ++i) {
    assert_true(it[i].offset >= 0 && it[i].offset + it[i].size <= total);
    for (int j = 0; j < i; ++j) {
      bool together = it[i].first <= it[j].last && it[j].first <= it[i].last;
      bool apart = it[i].offset + it[i].size <= it[j].offset || it[j].offset + it[j].size <= it[i].offset;
      assert_true(!together || apart || !it[i].size || !it[j].size);
    }
  }
}

static void test_random(void **state) {
  (void)state;
  unsigned seed = (unsigned)getpid();
  const char *given = getenv("O3_TEST_SEED");
  if (given) seed = (unsigned)strtoul(given, NULL, 10);
  printf("O3_TEST_SEED=%u\n", seed);
  srand(seed);
  for (int round = 0; round < 200; ++round) {
    o3_interval_t it[60];
    o3_arena_t *arena = o3_arena_create();
    int count = rand() % 60;
    int64_t total;
    for (int i = 0; i < count; ++i) {
      int64_t first = rand() % 50;
      it[i] = (o3_interval_t){.size = rand() % 1000 * 64, .first = first, .last = first + rand() % 10};
    }
    assert_null(o3_intervals_pack(arena, it, count, &total));
    check_no_overlap(it, count, total);
    int64_t least = o3_intervals_live_max(it, count);
    assert_true(total >= least);
    assert_true((double)total <= 1.5 * (double)least);
    o3_arena_destroy(arena);
  }
}

/* A chain of layers, each reading the one before, as networks are: no waste. */
static void test_chain(void **state) {
  (void)state;
  o3_interval_t it[100];
  o3_arena_t *arena = o3_arena_create();
  int64_t total;
  for (int i = 0; i < 100; ++i) it[i] = (o3_interval_t){.size = (100 - i) * 64, .first = i, .last = i + 1};
  assert_null(o3_intervals_pack(arena, it, 100, &total));
  check_no_overlap(it, 100, total);
  assert_true(total * 10 <= o3_intervals_live_max(it, 100) * 11);
  o3_arena_destroy(arena);
}

static void test_empty(void **state) {
  (void)state;
  o3_arena_t *arena = o3_arena_create();
  o3_interval_t it[2] = {{.size = 0, .first = 1, .last = 2}, {.size = 64, .first = INT64_MAX, .last = -1}};
  int64_t total = -1;
  assert_null(o3_intervals_pack(arena, it, 0, &total));
  assert_int_equal(total, 0);
  assert_null(o3_intervals_pack(arena, it, 2, &total));
  assert_int_equal(total, 64);
  o3_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_chain),
                                     cmocka_unit_test(test_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
