#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "target/nvptx/ptx.h"

extern char **environ;

/* ---- Finding it ---- */

static char *executable(const char *folder, int length) {
  char *path = NULL;
  if (asprintf(&path, "%.*s/ptxas", length, folder) < 0) return NULL;
  if (access(path, X_OK) == 0) return path;
  free(path);
  return NULL;
}

char *o3_ptxas_find(void) {
  const char *given = getenv("O3_PTXAS"), *search = getenv("PATH");
  if (given) return *given ? strdup(given) : NULL;
  for (const char *at = search ? search : ""; *at;) {
    size_t length = strcspn(at, ":");
    char *path = length ? executable(at, (int)length) : NULL;
    if (path) return path;
    at += length + (at[length] == ':');
  }
  static const char FOLDER[] = "/usr/local/cuda/bin";
  return executable(FOLDER, (int)strlen(FOLDER));
}

/* ---- Running it ---- */

static o3_status_t failed(const char *what) {
  return o3_status_create(O3_STATUS_IO, "ptxas: %s: %s", what, strerror(errno));
}

static int spawn(const char *path, char *const *arguments, int output, pid_t *child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  int error = posix_spawn(child, path, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

static o3_status_t read_bytes(int fd, o3_artifact_t *file) {
  off_t size = lseek(fd, 0, SEEK_END);
  if (size < 0 || lseek(fd, 0, SEEK_SET) < 0) return failed("reading what it wrote");
  file->data = malloc((size_t)size + 1);
  O3_TRY_ALLOC(file->data);
  for (size_t at = 0; at < (size_t)size;) {
    ssize_t count = read(fd, (char *)file->data + at, (size_t)size - at);
    if (count <= 0 && errno != EINTR) return failed("reading what it wrote");
    if (count > 0) at += (size_t)count;
  }
  file->size = (size_t)size;
  return NULL;
}

/* By its path: the program may have put a new file there. */
static o3_status_t read_file(const char *path, o3_artifact_t *file) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed(path);
  o3_status_t status = read_bytes(fd, file);
  close(fd);
  return status;
}

static o3_status_t write_all(int fd, const o3_artifact_t *text) {
  for (size_t at = 0; at < text->size;) {
    ssize_t count = write(fd, (const char *)text->data + at, text->size - at);
    if (count < 0 && errno != EINTR) return failed("writing what it reads");
    if (count > 0) at += (size_t)count;
  }
  return NULL;
}

/* What a ptxas says that is older than the card, or than the PTX. */
static bool is_too_old(const char *printed) {
  return strstr(printed, "is not defined for option 'gpu-name'") || strstr(printed, "Unsupported .version");
}

/* What the program prints, until it ends. */
static o3_status_t run(const char *path, char *const *arguments, o3_strbuf_t *printed) {
  int ends[2], state = 0;
  pid_t child = 0;
  char buffer[4096];
  if (pipe2(ends, O_CLOEXEC)) return failed("pipe");
  errno = spawn(path, arguments, ends[1], &child);
  close(ends[1]);
  if (errno) {
    close(ends[0]);
    return failed(path);
  }
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR);)
    if (count > 0) o3_strbuf_append(printed, buffer, (size_t)count);
  close(ends[0]);
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return NULL;
  const char *text = printed->failed || !printed->length ? "it printed nothing" : printed->text;
  if (is_too_old(text))
    return o3_status_create(O3_STATUS_UNSUPPORTED, "%s is too old: %.*s", path, (int)strcspn(text, "\n"),
                            text);
  return o3_status_create(O3_STATUS_INTERNAL, "%s does not take the code: %s", path, text);
}

typedef struct files {
  char in[64], out[64];
  int in_fd, out_fd;
} files_t;

static o3_status_t open_files(files_t *files) {
  const char *folder = getenv("TMPDIR");
  if (!folder || strlen(folder) > 32) folder = "/tmp";
  snprintf(files->in, sizeof(files->in), "%s/o3-XXXXXX.ptx", folder);
  snprintf(files->out, sizeof(files->out), "%s/o3-XXXXXX.cubin", folder);
  files->in_fd = mkostemps(files->in, 4, O_CLOEXEC);
  if (files->in_fd < 0) return failed(files->in);
  files->out_fd = mkostemps(files->out, 6, O_CLOEXEC);
  if (files->out_fd >= 0) return NULL;
  o3_status_t status = failed(files->out);
  close(files->in_fd);
  unlink(files->in);
  return status;
}

static o3_status_t assemble(const char *ptxas, const char *arch, files_t *files, const o3_artifact_t *ptx,
                            o3_artifact_t *cubin, o3_strbuf_t *printed) {
  char *arguments[] = {
      (char *)(uintptr_t)ptxas, "-v", "-O3", (char *)(uintptr_t)arch, "-o", files->out, files->in, NULL};
  O3_TRY(write_all(files->in_fd, ptx));
  O3_TRY(run(ptxas, arguments, printed));
  return read_file(files->out, cubin);
}

o3_status_t o3_ptxas_run(const char *ptxas, const o3_gpu_t *gpu, bool specific, const o3_artifact_t *ptx,
                         o3_artifact_t *cubin, char **report) {
  char arch[32];
  files_t files;
  o3_strbuf_t printed = O3_STRBUF_INIT;
  *cubin = (o3_artifact_t){0};
  if (report) *report = NULL;
  snprintf(arch, sizeof(arch), "--gpu-name=sm_%d%s", gpu->sm, specific ? "a" : "");
  O3_TRY(open_files(&files));
  o3_status_t status = assemble(ptxas, arch, &files, ptx, cubin, &printed);
  close(files.in_fd);
  close(files.out_fd);
  unlink(files.in);
  unlink(files.out);
  if (!status && report) *report = strdup(printed.failed || !printed.text ? "" : printed.text);
  o3_strbuf_deinit(&printed);
  return status;
}
