#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/map.h"
#include "unit.h"

static int create(void **state) { return (*state = o3_arena_create()) ? 0 : -1; }

static int destroy(void **state) {
  o3_fault_alloc_arm(0);
  o3_arena_destroy(*state);
  return 0;
}

static int values[20000];

static void absent_keys_give_null(void **state) {
  o3_str_map_t *map = o3_str_map_create(*state);
  assert_null(o3_str_map_get(map, "x", 1));
  assert_null(o3_str_map_get(map, NULL, 0));
  assert_int_equal(o3_str_map_count(map), 0);
}

static void keys_are_copied(void **state) {
  o3_str_map_t *map = o3_str_map_create(*state);
  char key[] = "Conv_1";
  assert_true(o3_str_map_put(map, key, 6, &values[1]));
  key[0] = 'X';
  assert_ptr_equal(o3_str_map_get(map, "Conv_1", 6), &values[1]);
  assert_null(o3_str_map_get(map, key, 6));
}

static void later_values_replace(void **state) {
  o3_str_map_t *map = o3_str_map_create(*state);
  assert_true(o3_str_map_put(map, "k", 1, &values[1]));
  assert_true(o3_str_map_put(map, "k", 1, &values[2]));
  assert_int_equal(o3_str_map_count(map), 1);
  assert_ptr_equal(o3_str_map_get(map, "k", 1), &values[2]);
}

/* Only length and bytes tell keys apart: the empty key, prefixes of each other, NULs inside. */
static void awkward_keys_differ(void **state) {
  static const struct {
    const char *text;
    size_t length;
  } keys[] = {{"", 0}, {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2}, {"a\0b", 3}, {"ab", 2}, {"\xff\xfe", 2}};
  o3_str_map_t *map = o3_str_map_create(*state);
  for (size_t i = 0; i < 8; ++i) assert_true(o3_str_map_put(map, keys[i].text, keys[i].length, &values[i]));
  assert_int_equal(o3_str_map_count(map), 8);
  for (size_t i = 0; i < 8; ++i)
    assert_ptr_equal(o3_str_map_get(map, keys[i].text, keys[i].length), &values[i]);
}

static void many_string_keys(void **state) {
  o3_str_map_t *map = o3_str_map_create(*state);
  char key[32];
  for (int i = 0; i < 20000; ++i)
    assert_true(o3_str_map_put(map, key, (size_t)sprintf(key, "/layer.%d/MatMul", i), &values[i]));
  assert_int_equal(o3_str_map_count(map), 20000);
  for (int i = 0; i < 20000; ++i)
    assert_ptr_equal(o3_str_map_get(map, key, (size_t)sprintf(key, "/layer.%d/MatMul", i)), &values[i]);
  assert_null(o3_str_map_get(map, "/layer.20000/MatMul", 19));
}

/* Long keys that differ in the last byte only. */
static void long_keys(void **state) {
  static char key[100000];
  memset(key, 'k', sizeof key);
  o3_str_map_t *map = o3_str_map_create(*state);
  for (int i = 0; i < 50; ++i) {
    key[sizeof key - 1] = (char)i;
    assert_true(o3_str_map_put(map, key, sizeof key, &values[i]));
  }
  key[sizeof key - 1] = 17;
  assert_ptr_equal(o3_str_map_get(map, key, sizeof key), &values[17]);
  assert_null(o3_str_map_get(map, key, sizeof key - 1));
}

/* These eight bytes have FNV-1a hash 0, and NULs behind them keep it: all have one hash. */
static void equal_hashes(void **state) {
  static const char key[] = "\xd5\x6b\xb9\x53\x42\x87\x08\x36\0\0\0\0\0\0\0";
  o3_str_map_t *map = o3_str_map_create(*state);
  for (size_t i = 0; i < 8; ++i) assert_true(o3_str_map_put(map, key, 8 + i, &values[i]));
  assert_int_equal(o3_str_map_count(map), 8);
  for (size_t i = 0; i < 8; ++i) assert_ptr_equal(o3_str_map_get(map, key, 8 + i), &values[i]);
}

/* A NULL value is kept, though get cannot tell it from none. */
static void null_values_count_as_present(void **state) {
  o3_str_map_t *map = o3_str_map_create(*state);
  assert_true(o3_str_map_put(map, "k", 1, NULL));
  assert_int_equal(o3_str_map_count(map), 1);
  assert_null(o3_str_map_get(map, "k", 1));
}

static void pointers_by_address(void **state) {
  o3_ptr_map_t *map = o3_ptr_map_create(*state);
  for (int i = 0; i < 20000; ++i) assert_true(o3_ptr_map_put(map, &values[i], &values[19999 - i]));
  assert_true(o3_ptr_map_put(map, &values[3], &values[0]));
  assert_ptr_equal(o3_ptr_map_get(map, &values[3]), &values[0]);
  for (int i = 4; i < 20000; ++i) assert_ptr_equal(o3_ptr_map_get(map, &values[i]), &values[19999 - i]);
  assert_null(o3_ptr_map_get(map, map));
}

static void null_is_a_pointer_key(void **state) {
  o3_ptr_map_t *map = o3_ptr_map_create(*state);
  assert_null(o3_ptr_map_get(map, NULL));
  assert_true(o3_ptr_map_put(map, NULL, &values[5]));
  assert_true(o3_ptr_map_put(map, (void *)16, &values[6]));
  assert_ptr_equal(o3_ptr_map_get(map, NULL), &values[5]);
  assert_ptr_equal(o3_ptr_map_get(map, NULL), &values[5]);
}

/* Addresses a page apart, as allocators give them: their low bits are equal. */
static void strided_addresses(void **state) {
  o3_ptr_map_t *map = o3_ptr_map_create(*state);
  for (uintptr_t i = 1; i <= 5000; ++i) assert_true(o3_ptr_map_put(map, (void *)(i << 12), &values[i]));
  for (uintptr_t i = 1; i <= 5000; ++i) assert_ptr_equal(o3_ptr_map_get(map, (void *)(i << 12)), &values[i]);
}

static void vectors_grow(void **state) {
  o3_ptr_vec_t vec = o3_ptr_vec(*state);
  assert_int_equal(vec.count, 0);
  for (int i = 0; i < 10000; ++i) assert_true(o3_ptr_vec_push(&vec, i % 3 ? &values[i] : NULL));
  assert_int_equal(vec.count, 10000);
  for (int i = 0; i < 10000; ++i) assert_ptr_equal(vec.items[i], i % 3 ? &values[i] : NULL);
}

/* A put that fails leaves the map as it was. */
static void running_out_leaves_the_map(void **state) {
  o3_str_map_t *map = o3_str_map_create(*state);
  char key[16];
  int puts = 0;
  for (uint64_t fault = 1; puts < 3000; ++puts) {
    size_t length = (size_t)sprintf(key, "key%d", puts);
    o3_fault_alloc_arm(fault);
    if (!o3_str_map_put(map, key, length, &values[puts])) {
      assert_null(o3_str_map_get(map, key, length));
      assert_int_equal(o3_str_map_count(map), (size_t)puts);
      o3_fault_alloc_arm(0);
      assert_true(o3_str_map_put(map, key, length, &values[puts]));
    }
  }
  for (int i = 0; i < puts; ++i)
    assert_ptr_equal(o3_str_map_get(map, key, (size_t)sprintf(key, "key%d", i)), &values[i]);
}

#define MAP_TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void) {
  const struct CMUnitTest map_tests[] = {
      MAP_TEST(absent_keys_give_null),
      MAP_TEST(keys_are_copied),
      MAP_TEST(later_values_replace),
      MAP_TEST(awkward_keys_differ),
      MAP_TEST(many_string_keys),
      MAP_TEST(long_keys),
      MAP_TEST(equal_hashes),
      MAP_TEST(null_values_count_as_present),
      MAP_TEST(pointers_by_address),
      MAP_TEST(null_is_a_pointer_key),
      MAP_TEST(strided_addresses),
      MAP_TEST(vectors_grow),
      MAP_TEST(running_out_leaves_the_map),
  };
  return cmocka_run_group_tests(map_tests, NULL, NULL);
}
