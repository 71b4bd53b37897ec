#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "unit.h"

/* Each test has a folder of its own in |*state|. */
static int create(void **state) {
  char *folder;
  o3_status_t status = o3_file_temp_dir_create(&folder);
  *state = folder;
  o3_status_destroy(status);
  return status ? -1 : 0;
}

static int destroy(void **state) {
  o3_fault_alloc_arm(0);
  o3_file_temp_dir_remove(*state);
  int left = !access(*state, F_OK);
  free(*state);
  return left ? -1 : 0;
}

/* Valid for the next three calls. */
static const char *path_in(const char *folder, const char *name) {
  static char paths[4][512];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static int entries_in(const char *folder) {
  int count = 0;
  DIR *open_folder = opendir(folder);
  while (readdir(open_folder)) ++count;
  closedir(open_folder);
  return count - 2; /* . and .. */
}

static void assert_content(const char *path, const char *data, size_t size) {
  o3_mapped_file_t file;
  assert_ok(o3_file_map(path, &file));
  assert_int_equal(file.size, size);
  assert_memory_equal(file.data, data, size);
  o3_file_unmap(&file);
  assert_null(file.data);
}

static void written_files_are_mapped(void **state) {
  const char *path = path_in(*state, "model.onnx");
  assert_ok(o3_file_write(path, "a\0b", 3));
  assert_content(path, "a\0b", 3);
  assert_ok(o3_file_write(path, "second", 6));
  assert_content(path, "second", 6);
  assert_int_equal(entries_in(*state), 1);
}

static void prepared_files_wait_for_the_commit(void **state) {
  const char *path = path_in(*state, "model.onnx");
  const o3_file_piece_t pieces[] = {{"one ", 4}, {NULL, 0}, {"two", 3}};
  o3_prepared_file_t *file;
  assert_ok(o3_file_write(path, "old", 3));
  assert_ok(o3_file_prepare(path, pieces, 3, &file));
  assert_content(path, "old", 3);
  o3_file_discard(file);
  assert_int_equal(entries_in(*state), 1);
  assert_ok(o3_file_prepare(path, pieces, 3, &file));
  assert_ok(o3_file_commit(file));
  assert_content(path, "one two", 7);
  assert_int_equal(entries_in(*state), 1);
  assert_fails(o3_file_prepare(path_in(*state, "no/folder"), pieces, 3, &file), O3_STATUS_NOT_FOUND,
               "no/folder");
  assert_null(file);
  o3_file_discard(NULL);
}

static void empty_files_have_a_pointer(void **state) {
  const char *path = path_in(*state, "empty");
  assert_ok(o3_file_write(path, NULL, 0));
  o3_mapped_file_t file;
  assert_ok(o3_file_map(path, &file));
  assert_non_null(file.data);
  assert_int_equal(file.size, 0);
  o3_file_unmap(&file);
  o3_file_unmap(&file); /* a second time is harmless */
}

static void large_files(void **state) {
  enum { SIZE = 5 << 20 };
  char *data = malloc(SIZE);
  assert_non_null(data);
  for (int i = 0; i < SIZE; ++i) data[i] = (char)(i * 31 >> 8);
  assert_ok(o3_file_write(path_in(*state, "large"), data, SIZE));
  assert_content(path_in(*state, "large"), data, SIZE);
  free(data);
}

static void missing_files_are_named(void **state) {
  o3_mapped_file_t file;
  const char *path = path_in(*state, "no such file");
  assert_fails(o3_file_map(path, &file), O3_STATUS_NOT_FOUND, path);
  assert_null(file.data);
  assert_fails(o3_file_map(path, &file), O3_STATUS_NOT_FOUND, "No such file or directory");
  assert_fails(o3_file_map("", &file), O3_STATUS_NOT_FOUND, "''");
  assert_fails(o3_file_write(path_in(*state, "no/folder"), "x", 1), O3_STATUS_NOT_FOUND, "no/folder");
}

static void what_is_no_file_is_refused(void **state) {
  o3_mapped_file_t file;
  assert_fails(o3_file_map(*state, &file), O3_STATUS_IO, "it is a directory, a regular file is needed");
  assert_fails(o3_file_map("/dev/null", &file), O3_STATUS_IO, "it is a device");
  const char *pipe_path = path_in(*state, "pipe");
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  assert_fails(o3_file_map(pipe_path, &file), O3_STATUS_IO, "it is a pipe");
  assert_fails(o3_file_write(pipe_path, "x", 1), O3_STATUS_IO, "it is a pipe");
  assert_fails(o3_file_write(*state, "x", 1), O3_STATUS_IO, "it is a directory");
  assert_fails(o3_file_write("/dev/null", "x", 1), O3_STATUS_IO, "it is a device");
}

static void names_that_are_too_long(void **state) {
  char name[400];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  o3_mapped_file_t file;
  assert_fails(o3_file_map(path_in(*state, name), &file), O3_STATUS_IO, "File name too long");
  assert_fails(o3_file_write(path_in(*state, name), "x", 1), O3_STATUS_IO, "File name too long");
}

/* A file size limit stands for a full disk: it fails the write half way. */
static void failed_writes_leave_the_old_file(void **state) {
  enum { SIZE = 1 << 20 };
  const char *path = path_in(*state, "model.so");
  assert_ok(o3_file_write(path, "old", 3));
  char *data = calloc(1, SIZE);
  assert_non_null(data);
  struct rlimit before, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 4096;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  o3_status_t status = o3_file_write(path, data, SIZE);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  free(data);
  assert_fails(status, O3_STATUS_IO, "File too large");
  assert_content(path, "old", 3);
  assert_int_equal(entries_in(*state), 1);
}

static void links_keep_pointing(void **state) {
  const char *path = path_in(*state, "real"), *link = path_in(*state, "link");
  assert_ok(o3_file_write(path, "old", 3));
  assert_int_equal(symlink("real", link), 0);
  assert_ok(o3_file_write(link, "new", 3));
  assert_content(path, "new", 3);
  struct stat info;
  assert_int_equal(lstat(link, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
}

static void modes_follow_the_umask(void **state) {
  const char *path = path_in(*state, "file");
  mode_t before = umask(027);
  o3_status_t status = o3_file_write(path, "x", 1);
  umask(before);
  assert_ok(status);
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
}

/* A run that was killed may have left a file of the name that comes first. */
static void old_temporary_files_do_not_matter(void **state) {
  for (int i = 0; i < 200; ++i) {
    char name[64];
    snprintf(name, sizeof name, "file.tmp-%ld-%d", (long)getpid(), i);
    int fd = open(path_in(*state, name), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
  }
  const char *path = path_in(*state, "file");
  assert_ok(o3_file_write(path, "new", 3));
  assert_content(path, "new", 3);
  assert_int_equal(entries_in(*state), 201);
}

static void pairs_stay_pairs(void **state) {
  const char *data = path_in(*state, "data"), *model = path_in(*state, "model");
  const o3_file_piece_t piece = {"new", 3};
  o3_prepared_file_t *files[2];
  for (int old = 0; old < 2; ++old) {
    assert_ok(o3_file_prepare(data, &piece, 1, &files[0]));
    assert_ok(o3_file_prepare(model, &piece, 1, &files[1]));
    assert_int_equal(mkdir(model, 0700), 0); /* which no file replaces */
    assert_fails(o3_file_commit_pair(files[0], files[1]), O3_STATUS_IO, model);
    if (old) assert_content(data, "old", 3);
    if (!old) assert_int_equal(access(data, F_OK), -1);
    assert_int_equal(entries_in(*state), 1 + old);
    assert_int_equal(rmdir(model), 0);
    assert_ok(o3_file_write(data, "old", 3));
  }
  assert_ok(o3_file_prepare(data, &piece, 1, &files[0]));
  assert_ok(o3_file_prepare(model, &piece, 1, &files[1]));
  assert_ok(o3_file_commit_pair(files[0], files[1]));
  assert_content(data, "new", 3);
  assert_content(model, "new", 3);
  assert_int_equal(entries_in(*state), 2);
}

static void temp_dirs_follow_tmpdir(void **state) {
  char *old = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
  char *folder;
  setenv("TMPDIR", *state, 1);
  assert_ok(o3_file_temp_dir_create(&folder));
  unit_assert_contains(folder, *state);
  struct stat info;
  assert_int_equal(stat(folder, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
  assert_ok(o3_file_write(path_in(folder, ".hidden"), "x", 1));
  o3_file_temp_dir_remove(folder);
  assert_int_equal(access(folder, F_OK), -1);
  free(folder);
  setenv("TMPDIR", path_in(*state, "missing"), 1);
  assert_fails(o3_file_temp_dir_create(&folder), O3_STATUS_NOT_FOUND, "missing/o3-");
  assert_null(folder);
  old ? setenv("TMPDIR", old, 1) : unsetenv("TMPDIR");
  free(old);
  o3_file_temp_dir_remove(path_in(*state, "missing")); /* nothing there: nothing happens */
}

static void running_out_is_reported(void **state) {
  const char *path = path_in(*state, "file");
  assert_ok(o3_file_write(path, "old", 3));
  o3_fault_alloc_arm(1);
  assert_fails(o3_file_write(path, "new", 3), O3_STATUS_OUT_OF_MEMORY, path);
  assert_true(o3_fault_alloc_has_failed());
  assert_content(path, "old", 3);
  char *folder;
  o3_fault_alloc_arm(1);
  assert_fails(o3_file_temp_dir_create(&folder), O3_STATUS_OUT_OF_MEMORY, "out of memory");
  assert_null(folder);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void) {
  const struct CMUnitTest file_tests[] = {
      FILE_TEST(written_files_are_mapped),
      FILE_TEST(prepared_files_wait_for_the_commit),
      FILE_TEST(empty_files_have_a_pointer),
      FILE_TEST(large_files),
      FILE_TEST(missing_files_are_named),
      FILE_TEST(what_is_no_file_is_refused),
      FILE_TEST(names_that_are_too_long),
      FILE_TEST(failed_writes_leave_the_old_file),
      FILE_TEST(links_keep_pointing),
      FILE_TEST(modes_follow_the_umask),
      FILE_TEST(old_temporary_files_do_not_matter),
      FILE_TEST(pairs_stay_pairs),
      FILE_TEST(temp_dirs_follow_tmpdir),
      FILE_TEST(running_out_is_reported),
  };
  return cmocka_run_group_tests(file_tests, NULL, NULL);
}
