/* LLD, objcopy and ar have no C API; they run as processes, with their complaints read from a pipe so that
 * they reach the user as part of one message. */
#include "package/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"

extern char **environ;

/* The child gets default signals, an empty mask, and one pipe for stdout and stderr. */
static int spawn(const char *path, const char *const *arguments, int output, pid_t *child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int error = posix_spawnp(child, path, &actions, &attributes, (char *const *)(uintptr_t)arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

static void read_all(int fd, o3_strbuf_t *text) {
  char buffer[4096];
  ssize_t count;
  while ((count = read(fd, buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR))
    if (count > 0) o3_strbuf_append(text, buffer, (size_t)count);
  while (text->length && text->text[text->length - 1] == '\n') text->text[--text->length] = '\0';
}

static o3_status_t judge(const char *program, int state, const o3_strbuf_t *text) {
  const char *said = text->length ? text->text : "it printed nothing";
  if (WIFSIGNALED(state))
    return o3_status_create(O3_STATUS_INTERNAL, "%s was ended by signal %d (%s): %s", program,
                            WTERMSIG(state), strsignal(WTERMSIG(state)), said);
  if (WEXITSTATUS(state) == 0) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "%s failed: %s", program, said);
}

static o3_status_t run_at(o3_workspace_t *workspace, const char *path, const char *const *arguments,
                          bool *absent) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return o3_status_create(O3_STATUS_IO, "cannot run %s: %s", arguments[0], strerror(errno));
  pid_t child = 0;
  int error = spawn(path, arguments, ends[1], &child);
  close(ends[1]);
  o3_status_t status = NULL;
  *absent = error == ENOENT;
  if (!error) {
    o3_workspace_set_child(workspace, child);
    o3_strbuf_t text = O3_STRBUF_INIT;
    read_all(ends[0], &text);
    int state = 0;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    o3_workspace_set_child(workspace, 0);
    status = judge(arguments[0], state, &text);
    o3_strbuf_deinit(&text);
  } else {
    status =
        o3_status_create(error == ENOENT ? O3_STATUS_NOT_FOUND : O3_STATUS_IO,
                         "cannot run %s, in '" O3_LLVM_BINDIR "' or PATH: %s", arguments[0], strerror(error));
  }
  close(ends[0]);
  return status;
}

o3_status_t o3_process_run(o3_workspace_t *workspace, const char *const *arguments) {
  o3_strbuf_t path = O3_STRBUF_INIT;
  o3_strbuf_printf(&path, O3_LLVM_BINDIR "/%s", arguments[0]);
  bool absent;
  o3_status_t status = path.failed ? o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory")
                                   : run_at(workspace, path.text, arguments, &absent);
  if (status && !path.failed && absent) {
    o3_status_destroy(status);
    status = run_at(workspace, arguments[0], arguments, &absent);
  }
  o3_strbuf_deinit(&path);
  return status;
}
