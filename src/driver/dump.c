#include "driver/dump.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* A signal that ends the compiler must not leave o3_file_write's temporary file. */
o3_status_t o3_dump_bytes(const void *data, size_t size, const char *path) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  o3_status_t status = o3_file_write(path, data, size);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}

o3_status_t o3_dump_module(MlirModule module, const char *heading, const char *path) {
  char *text = o3_ir_print(mlirModuleGetOperation(module));
  O3_TRY_ALLOC(text);
  o3_strbuf_t whole = O3_STRBUF_INIT;
  o3_strbuf_puts(&whole, heading);
  o3_strbuf_puts(&whole, text);
  free(text);
  o3_status_t status = whole.failed ? o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory")
                                    : o3_dump_bytes(whole.text, whole.length, path);
  o3_strbuf_deinit(&whole);
  return status;
}

/* The old file goes first: this compilation may have been started from it, and its weights lie there, mapped.
 */
o3_status_t o3_dump_weights(const o3_weights_t *weights, const char *path) {
  if (unlink(path) && errno != ENOENT)
    return o3_status_create(O3_STATUS_IO, "cannot replace '%s': %s", path, strerror(errno));
  return o3_weights_save(weights, path);
}

/* ---- Reading ---- */

/* NAME.o3w or weights.o3w beside |path|, whichever is there; NULL for neither. malloc'ed. */
static o3_status_t find_weights(const char *path, char **found) {
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash - path) + 1 : 0;
  const char *dot = strrchr(path + folder, '.');
  int stem = dot ? (int)(dot - path) : (int)strlen(path);
  o3_strbuf_t name = O3_STRBUF_INIT;
  o3_strbuf_printf(&name, "%.*s.o3w", stem, path);
  if (!name.failed && access(name.text, F_OK)) {
    o3_strbuf_deinit(&name);
    o3_strbuf_printf(&name, "%.*s" O3_DUMP_WEIGHTS, folder, path);
  }
  bool failed = name.failed;
  if (failed || access(name.text, F_OK)) o3_strbuf_deinit(&name);
  *found = name.text;
  return failed ? o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory") : NULL;
}

static o3_status_t load_weights(o3_weights_t *weights, const char *path) {
  char *file;
  O3_TRY(find_weights(path, &file));
  o3_status_t status = file ? o3_weights_load(weights, file) : NULL;
  free(file);
  return status;
}

static o3_status_t read_stdin(MlirContext context, MlirModule *module) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  char buffer[4096];
  size_t count;
  while ((count = fread(buffer, 1, sizeof(buffer), stdin)) > 0) o3_strbuf_append(&text, buffer, count);
  bool failed = ferror(stdin) || text.failed;
  if (!failed)
    *module = mlirModuleCreateParse(context, mlirStringRefCreate(text.text ? text.text : "", text.length));
  o3_strbuf_deinit(&text);
  return failed ? o3_status_create(O3_STATUS_IO, "cannot read stdin: %s", strerror(errno)) : NULL;
}

/* The file is mapped once before MLIR reads it: for our own words when it cannot be. */
static o3_status_t read_file(MlirContext context, const char *path, MlirModule *module) {
  o3_mapped_file_t file;
  O3_TRY(o3_file_map(path, &file));
  o3_file_unmap(&file);
  *module = mlirModuleCreateParseFromFile(context, O3_STR(path));
  return NULL;
}

o3_status_t o3_dump_read(MlirContext context, o3_weights_t *weights, const char *path, MlirModule *module) {
  *module = (MlirModule){0};
  bool from_stdin = !strcmp(path, "-");
  o3_diagnostics_t *diagnostics = o3_diagnostics_begin(context);
  o3_status_t status = from_stdin ? read_stdin(context, module) : read_file(context, path, module);
  bool parsed = status || !mlirModuleIsNull(*module);
  const char *name = from_stdin ? "<stdin>" : path;
  O3_TRY(o3_status_join(status, o3_diagnostics_end(diagnostics, parsed, O3_STATUS_INVALID_MODEL, name)));
  return from_stdin ? NULL : load_weights(weights, path);
}
