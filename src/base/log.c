/* The stream's own lock keeps the messages of threads apart, and needs no memory: a message that says that
 * memory is out must come out. */
#include "base/log.h"

#include <stdatomic.h>
#include <stdio.h>

static const char *const level_names[] = {
#define O3_LOG_LEVEL(id, text) text,
#include "base/log_levels.def"
#undef O3_LOG_LEVEL
};

static _Atomic o3_log_level_t current_level = O3_LOG_WARNING;
static const char *_Atomic program = "o3";

void o3_log_level_set(o3_log_level_t level) { atomic_store(&current_level, level); }

void o3_log_program_set(const char *name) { atomic_store(&program, name); }

void o3_log(o3_log_level_t level, const char *format, ...) {
  if (level > atomic_load(&current_level)) return;
  va_list args;
  va_start(args, format);
  flockfile(stderr);
  fprintf(stderr, "%s: %s: ", atomic_load(&program), level_names[level]);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  funlockfile(stderr);
  va_end(args);
}

void o3_log_status(o3_status_t status) {
  if (!status) return;
  o3_log(O3_LOG_ERROR, "%s: %s", o3_status_code_name(o3_status_code(status)), o3_status_message(status));
  o3_status_destroy(status);
}
