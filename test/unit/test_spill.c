#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/spill.h"
#include "unit.h"

enum { BYTES = 100000 };

typedef struct fixture {
  char *folder;
  o3_spill_t *spill;
} fixture_t;

static int set_up(void **state) {
  static fixture_t f;
  assert_ok(o3_file_temp_dir_create(&f.folder));
  assert_ok(o3_spill_create(f.folder, &f.spill));
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  o3_spill_destroy(f->spill);
  o3_file_temp_dir_remove(f->folder);
  free(f->folder);
  return 0;
}

static void expect_filled(const o3_spill_part_t *part, uint8_t value) {
  const uint8_t *data = part->data;
  for (int i = 0; i < BYTES; ++i) assert_int_equal(data[i], value);
}

static void parts_keep_their_data(void **state) {
  fixture_t *f = *state;
  o3_spill_part_t parts[3];
  for (int i = 0; i < 3; ++i) {
    o3_spill_alloc(f->spill, BYTES, &parts[i]);
    assert_non_null(parts[i].data);
    expect_filled(&parts[i], 0);
    memset(parts[i].data, i + 1, BYTES);
  }
  o3_spill_release(&parts[0]);
  o3_spill_free(f->spill, &parts[1]);
  assert_null(parts[1].data);
  o3_spill_alloc(f->spill, BYTES, &parts[1]);
  expect_filled(&parts[1], 0);
  expect_filled(&parts[0], 1);
  expect_filled(&parts[2], 3);
  for (int i = 0; i < 3; ++i) o3_spill_free(f->spill, &parts[i]);
}

static void the_file_has_no_name(void **state) {
  const fixture_t *f = *state;
  int entries = 0;
  DIR *folder = opendir(f->folder);
  while (readdir(folder)) ++entries;
  closedir(folder);
  assert_int_equal(entries, 2); /* . and .. */
}

static void no_room_is_known_at_once(void **state) {
  fixture_t *f = *state;
  struct rlimit before, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = BYTES;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  o3_spill_part_t fits, large;
  o3_spill_alloc(f->spill, BYTES / 2, &fits);
  o3_spill_alloc(f->spill, BYTES, &large);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  assert_non_null(fits.data);
  assert_null(large.data);
  o3_spill_alloc(f->spill, SIZE_MAX - 1, &large);
  assert_null(large.data);
  o3_spill_free(f->spill, &fits);
}

static void a_folder_that_is_not_there(void **state) {
  (void)state;
  o3_spill_t *spill;
  assert_fails(o3_spill_create("/no/such/folder", &spill), O3_STATUS_IO,
               "cannot make a file in '/no/such/folder': No such file or directory");
  assert_null(spill);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(parts_keep_their_data, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_file_has_no_name, set_up, tear_down),
      cmocka_unit_test_setup_teardown(no_room_is_known_at_once, set_up, tear_down),
      cmocka_unit_test(a_folder_that_is_not_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
