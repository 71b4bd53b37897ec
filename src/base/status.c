/* A status is one allocation, code and text together, so that making one can fail in one place only. The
 * answer there is a static status: reporting that memory is out must not need memory. */
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

struct o3_status {
  o3_status_code_t code;
  const char *message; /* right behind the struct, or a constant */
};

/* Never written to, never freed. */
static struct o3_status out_of_memory = {O3_STATUS_OUT_OF_MEMORY, "out of memory"};

static o3_status_t status_alloc(o3_status_code_t code, size_t length, char **text) {
  o3_status_t status = o3_fault_malloc(sizeof *status + length + 1);
  if (!status) return NULL;
  *text = (char *)(status + 1);
  *status = (struct o3_status){code, *text};
  return status;
}

/* "<formatted><separator><rest>" under |code|; NULL when memory is out. */
static o3_status_t status_format(o3_status_code_t code, const char *separator, const char *rest,
                                 const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int printed = vsnprintf(NULL, 0, format, again);
  va_end(again);
  /* A format that cannot be printed (a wide character without an encoding) is reported as it stands. */
  size_t length = printed < 0 ? strlen(format) : (size_t)printed;
  char *text;
  o3_status_t status = status_alloc(code, length + strlen(separator) + strlen(rest), &text);
  if (!status) return NULL;
  if (printed < 0)
    memcpy(text, format, length);
  else
    vsnprintf(text, length + 1, format, args);
  stpcpy(stpcpy(text + length, separator), rest);
  return status;
}

o3_status_t o3_status_create(o3_status_code_t code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  o3_status_t status = status_format(code, "", "", format, args);
  va_end(args);
  return status ? status : &out_of_memory;
}

/* |old|, unless |made| takes its place. Without memory for the longer text the shorter one stays: the
 * first cause matters more than its context. */
static o3_status_t status_replace(o3_status_t old, o3_status_t made) {
  if (!made) return old;
  o3_status_destroy(old);
  return made;
}

o3_status_t o3_status_annotate(o3_status_t status, const char *format, ...) {
  if (!status) return NULL;
  va_list args;
  va_start(args, format);
  o3_status_t made = status_format(status->code, ": ", status->message, format, args);
  va_end(args);
  return status_replace(status, made);
}

o3_status_t o3_status_join(o3_status_t first, o3_status_t second) {
  if (!first) return second;
  if (!second) return first;
  char *text;
  o3_status_t joined = status_alloc(first->code, strlen(first->message) + 2 + strlen(second->message), &text);
  if (joined) stpcpy(stpcpy(stpcpy(text, first->message), "; "), second->message);
  o3_status_destroy(second);
  return status_replace(first, joined);
}

o3_status_code_t o3_status_code(o3_status_t status) { return status ? status->code : O3_STATUS_OK; }

const char *o3_status_message(o3_status_t status) { return status ? status->message : ""; }

const char *o3_status_code_name(o3_status_code_t code) {
  static const char *const names[] = {
      [O3_STATUS_OK] = "ok",
#define O3_STATUS_CODE(id, text) [O3_STATUS_##id] = text,
#include "base/status_codes.def"
#undef O3_STATUS_CODE
  };
  size_t index = (size_t)code;
  return index < sizeof names / sizeof *names ? names[index] : "unknown status code";
}

void o3_status_destroy(o3_status_t status) {
  if (status != &out_of_memory) free(status);
}
