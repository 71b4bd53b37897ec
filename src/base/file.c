/* Reading maps: a model's weights are used where they lie in the page cache. Writing goes through a
 * temporary file and rename, so that a reader sees the old or the new file and a failed write leaves the
 * old one. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/strbuf.h"

/* What an empty file's |data| points to; mmap takes no zero length. */
static const uint8_t empty_data[1];

static o3_status_t file_error(const char *action, const char *path, int error) {
  o3_status_code_t code = error == ENOENT || error == ENOTDIR ? O3_STATUS_NOT_FOUND
                          : error == ENOMEM                   ? O3_STATUS_OUT_OF_MEMORY
                                                              : O3_STATUS_IO;
  return o3_status_create(code, "cannot %s '%s': %s", action, path, strerror(error));
}

static const char *file_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

static o3_status_t map_descriptor(int fd, const char *path, o3_mapped_file_t *file) {
  struct stat info;
  if (fstat(fd, &info)) return file_error("read", path, errno);
  if (!S_ISREG(info.st_mode))
    return o3_status_create(O3_STATUS_IO, "cannot read '%s': it is %s, a regular file is needed", path,
                            file_kind(info.st_mode));
  size_t size = (size_t)info.st_size;
  void *data = (void *)(uintptr_t)empty_data;
  if (size > 0) data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return file_error("map", path, errno);
  *file = (o3_mapped_file_t){data, size};
  return NULL;
}

o3_status_t o3_file_map(const char *path, o3_mapped_file_t *file) {
  *file = (o3_mapped_file_t){0};
  /* O_NONBLOCK: opening a pipe without a writer must be refused, not waited for. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return file_error("open", path, errno);
  o3_status_t status = map_descriptor(fd, path, file);
  close(fd);
  return status;
}

void o3_file_unmap(o3_mapped_file_t *file) {
  if (file->size > 0) munmap((void *)(uintptr_t)file->data, file->size);
  *file = (o3_mapped_file_t){0};
}

void o3_file_release(const o3_mapped_file_t *file) {
  if (file->size) (void)madvise((void *)(uintptr_t)file->data, file->size, MADV_DONTNEED); /* advice */
}

static bool write_all(int fd, const uint8_t *data, size_t size) {
  while (size > 0) {
    ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    data += written;
    size -= (size_t)written;
  }
  return true;
}

/* The file that a write to |path| replaces: behind symbolic links, else the link itself would be replaced.
 * A device or pipe must not be renamed over. */
static o3_status_t resolve_target(const char *path, char **target) {
  *target = NULL;
  struct stat info;
  bool exists = !stat(path, &info);
  if (!exists && errno != ENOENT) return file_error("write", path, errno);
  if (exists && !S_ISREG(info.st_mode))
    return o3_status_create(O3_STATUS_IO, "cannot write '%s': it is %s, a regular file is needed", path,
                            file_kind(info.st_mode));
  *target = exists ? realpath(path, NULL) : strdup(path);
  return *target ? NULL : file_error("write", path, errno);
}

/* A new file beside |target|, with the mode that the umask gives: mkstemp would make it private. */
static int open_temporary(const char *target, o3_strbuf_t *name) {
  static atomic_uint counter;
  int fd;
  do {
    o3_strbuf_deinit(name);
    o3_strbuf_printf(name, "%s.tmp-%ld-%u", target, (long)getpid(), atomic_fetch_add(&counter, 1));
    if (name->failed) {
      errno = ENOMEM;
      return -1;
    }
    fd = open(name->text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EEXIST);
  return fd;
}

struct o3_prepared_file {
  char *target;
  o3_strbuf_t temporary;
};

/* Writes, and closes |fd|; 0 or the error number. */
static int fill(int fd, const o3_file_piece_t *pieces, size_t count) {
  int error = 0;
  for (size_t i = 0; i < count && !error; ++i)
    if (!write_all(fd, pieces[i].data, pieces[i].size)) error = errno;
  /* Network and quota file systems report a failed write here. */
  if (close(fd) && !error) error = errno;
  return error;
}

static void free_prepared(o3_prepared_file_t *file) {
  o3_strbuf_deinit(&file->temporary);
  free(file->target);
  free(file);
}

void o3_file_discard(o3_prepared_file_t *file) {
  if (!file) return;
  unlink(file->temporary.text);
  free_prepared(file);
}

o3_status_t o3_file_prepare(const char *path, const o3_file_piece_t *pieces, size_t count,
                            o3_prepared_file_t **file) {
  *file = NULL;
  o3_prepared_file_t *made = o3_fault_calloc(1, sizeof(*made));
  if (!made) return file_error("write", path, ENOMEM);
  o3_status_t status = resolve_target(path, &made->target);
  int fd = status ? -1 : open_temporary(made->target, &made->temporary);
  int error = status ? 0 : fd < 0 ? errno : fill(fd, pieces, count);
  if (error) status = file_error("write", path, error);
  if (!status) {
    *file = made;
  } else if (fd >= 0) {
    o3_file_discard(made);
  } else {
    free_prepared(made);
  }
  return status;
}

o3_status_t o3_file_commit(o3_prepared_file_t *file) {
  if (!rename(file->temporary.text, file->target)) {
    free_prepared(file);
    return NULL;
  }
  o3_status_t status = file_error("write", file->target, errno);
  o3_file_discard(file);
  return status;
}

/* A second name, |old|, for what |first| will replace, or another name where a file can have but one; |kept|
 * tells whether there is such a file. */
static o3_status_t keep_old(const o3_prepared_file_t *first, const char *old, bool *kept) {
  *kept = !link(first->target, old) || (errno != ENOENT && !rename(first->target, old));
  return *kept || errno == ENOENT ? NULL : file_error("keep", first->target, errno);
}

o3_status_t o3_file_commit_pair(o3_prepared_file_t *first, o3_prepared_file_t *second) {
  bool kept = false;
  char *target = strdup(first->target);
  o3_strbuf_t old = O3_STRBUF_INIT;
  o3_strbuf_printf(&old, "%s.old", first->temporary.text);
  o3_status_t status =
      target && !old.failed ? keep_old(first, old.text, &kept) : file_error("write", first->target, ENOMEM);
  bool replaced = false;
  if (status) {
    o3_file_discard(first);
  } else {
    status = o3_file_commit(first);
    replaced = !status;
  }
  if (replaced)
    status = o3_file_commit(second);
  else
    o3_file_discard(second);
  /* The error is reported already; a restoring that fails, too, leaves the old data under its other name. */
  if (status && (kept ? rename(old.text, target) : replaced && unlink(target))) kept = false;
  if (kept) unlink(old.text);
  o3_strbuf_deinit(&old);
  free(target);
  return status;
}

o3_status_t o3_file_write(const char *path, const void *data, size_t size) {
  const o3_file_piece_t piece = {data, size};
  o3_prepared_file_t *file;
  O3_TRY(o3_file_prepare(path, &piece, 1, &file));
  return o3_file_commit(file);
}

o3_status_t o3_file_stdout_end(void) {
  if (!fflush(stdout) && !ferror(stdout)) return NULL;
  return o3_status_create(O3_STATUS_IO, "cannot write to stdout");
}

o3_status_t o3_file_temp_dir_create(char **path) {
  *path = NULL;
  const char *base = getenv("TMPDIR");
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "%s/o3-XXXXXX", base && *base ? base : "/tmp");
  o3_status_t status = NULL;
  if (name.failed)
    status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  else if (mkdtemp(name.text))
    *path = name.text;
  else
    status = file_error("create temporary folder", name.text, errno);
  if (status) o3_strbuf_deinit(&name);
  return status;
}

void o3_file_temp_dir_remove(const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return;
  int fd = dirfd(folder);
  struct dirent *entry;
  while (fd >= 0 && (entry = readdir(folder)))
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlinkat(fd, entry->d_name, 0);
  closedir(folder);
  rmdir(path);
}
