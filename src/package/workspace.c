/* The folder lies beside the output and not under $TMPDIR: a rename needs the same file system, and /tmp may
 * be memory, which gigabytes of weights would fill.
 *
 * A signal handler may only call what is async-signal-safe. So the names in a workspace are fixed, its folder
 * is open from the start, and the workspaces of the process are in a table of atomics. */
#include "package/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"

static const char *const FILE_NAMES[] = {
#define O3_WORK_FILE(id, name) name,
#include "package/work_files.def"
#undef O3_WORK_FILE
};

struct o3_workspace {
  o3_arena_t *arena;
  char *folder;
  const char *paths[O3_WORK_FILE_COUNT];
  int fd; /* of the folder */
  _Atomic pid_t child;
};

static _Atomic(o3_workspace_t *) active[O3_WORKSPACE_MAX];

static o3_status_t io_error(const char *action, const char *path, int error) {
  o3_status_code_t code = error == ENOENT || error == ENOTDIR ? O3_STATUS_NOT_FOUND : O3_STATUS_IO;
  return o3_status_create(code, "cannot %s '%s': %s", action, path, strerror(error));
}

static o3_status_t check_output(const char *output) {
  struct stat info;
  if (stat(output, &info)) return errno == ENOENT ? NULL : io_error("write", output, errno);
  if (S_ISREG(info.st_mode)) return NULL;
  return o3_status_create(O3_STATUS_IO, "cannot write '%s': it is %s, a regular file is needed", output,
                          S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
}

static bool activate(o3_workspace_t *self) {
  for (int i = 0; i < O3_WORKSPACE_MAX; ++i) {
    o3_workspace_t *expected = NULL;
    if (atomic_compare_exchange_strong(&active[i], &expected, self)) return true;
  }
  return false;
}

static void deactivate(const o3_workspace_t *self) {
  for (int i = 0; i < O3_WORKSPACE_MAX; ++i) {
    o3_workspace_t *expected = (o3_workspace_t *)(uintptr_t)self;
    if (atomic_compare_exchange_strong(&active[i], &expected, NULL)) return;
  }
}

/* Async-signal-safe. Files that do not exist are no matter. */
static void remove_files(const o3_workspace_t *self) {
  for (int i = 0; i < O3_WORK_FILE_COUNT; ++i) unlinkat(self->fd, FILE_NAMES[i], 0);
  rmdir(self->folder);
}

static o3_status_t name_files(o3_workspace_t *self, const char *output) {
  const char *slash = strrchr(output, '/');
  self->folder = slash ? o3_arena_printf(self->arena, "%.*s/.o3c-XXXXXX", (int)(slash - output), output)
                       : o3_arena_strdup(self->arena, "./.o3c-XXXXXX");
  O3_TRY_ALLOC(self->folder);
  if (!mkdtemp(self->folder)) {
    int error = errno;
    const char *folder = slash ? o3_arena_strndup(self->arena, output, (size_t)(slash - output) + 1) : ".";
    O3_TRY_ALLOC(folder);
    return o3_status_annotate(io_error("write to the folder", folder, error), "output '%s'", output);
  }
  self->fd = open(self->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < O3_WORK_FILE_COUNT; ++i) {
    self->paths[i] = o3_arena_printf(self->arena, "%s/%s", self->folder, FILE_NAMES[i]);
    if (!self->paths[i] || self->fd < 0) {
      rmdir(self->folder);
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory or file descriptors");
    }
  }
  return NULL;
}

static o3_status_t set_up(o3_workspace_t *self, const char *output) {
  O3_TRY(check_output(output));
  O3_TRY(name_files(self, output));
  if (activate(self)) return NULL;
  rmdir(self->folder);
  return o3_status_create(O3_STATUS_UNSUPPORTED, "more than %d compilations at a time in one process",
                          O3_WORKSPACE_MAX);
}

o3_status_t o3_workspace_create(const char *output, o3_workspace_t **out) {
  *out = NULL;
  o3_arena_t *arena = o3_arena_create();
  O3_TRY_ALLOC(arena);
  o3_workspace_t *self = O3_ARENA_NEW(arena, o3_workspace_t);
  o3_status_t status = NULL;
  if (self) {
    *self = (o3_workspace_t){.arena = arena, .fd = -1};
    /* No signal between the folder's making and its entry in the table. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    status = set_up(self, output);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  } else {
    status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  if (!status) {
    *out = self;
    return NULL;
  }
  if (self && self->fd >= 0) close(self->fd);
  o3_arena_destroy(arena);
  return status;
}

void o3_workspace_destroy(o3_workspace_t *self) {
  if (!self) return;
  remove_files(self);
  deactivate(self);
  close(self->fd);
  o3_arena_destroy(self->arena);
}

const char *o3_workspace_folder(const o3_workspace_t *self) { return self->folder; }

const char *o3_workspace_path(const o3_workspace_t *self, o3_work_file_t file) {
  O3_ASSERT((unsigned)file < O3_WORK_FILE_COUNT);
  return self->paths[file];
}

o3_status_t o3_workspace_write(const o3_workspace_t *self, o3_work_file_t file, const void *data,
                               size_t size) {
  const char *path = o3_workspace_path(self, file);
  FILE *stream = fopen(path, "wbe");
  if (!stream) return io_error("write", path, errno);
  bool written = size == 0 || fwrite(data, size, 1, stream) == 1;
  int error = errno;
  if (fclose(stream) && written) {
    written = false;
    error = errno;
  }
  return written ? NULL : io_error("write", path, error);
}

o3_status_t o3_workspace_publish(const o3_workspace_t *self, o3_work_file_t file, const char *output) {
  /* A link to the old output is followed, else it would be replaced itself. */
  char *target = realpath(output, NULL);
  int failed = rename(o3_workspace_path(self, file), target ? target : output);
  int error = errno;
  free(target);
  return failed ? io_error("write", output, error) : NULL;
}

void o3_workspace_set_child(o3_workspace_t *self, pid_t child) { atomic_store(&self->child, child); }

void o3_workspaces_abandon(void) {
  for (int i = 0; i < O3_WORKSPACE_MAX; ++i) {
    o3_workspace_t *self = atomic_exchange(&active[i], NULL);
    if (!self) continue;
    pid_t child = atomic_load(&self->child);
    /* The linker removes its own temporary files when it is told to end. */
    if (child > 0 && !kill(child, SIGTERM)) waitpid(child, NULL, 0);
    remove_files(self);
  }
}
