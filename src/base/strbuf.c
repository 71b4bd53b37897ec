/* Appending never reports by itself: a writer of many pieces looks at |failed| once, at the end. */
#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

enum { FIRST_CAPACITY = 64 };

static bool fail(o3_strbuf_t *buffer) {
  buffer->failed = true;
  return false;
}

/* Room for |extra| more bytes and the NUL. */
static bool reserve(o3_strbuf_t *buffer, size_t extra) {
  if (buffer->failed) return false;
  size_t needed;
  if (__builtin_add_overflow(buffer->length, extra, &needed) || needed > PTRDIFF_MAX) return fail(buffer);
  if (needed < buffer->capacity) return true;
  size_t capacity = buffer->capacity ? buffer->capacity : FIRST_CAPACITY;
  while (capacity <= needed) capacity *= 2; /* needed <= PTRDIFF_MAX: doubling cannot overflow */
  char *text = o3_fault_realloc(buffer->text, capacity);
  if (!text) return fail(buffer);
  buffer->text = text;
  buffer->capacity = capacity;
  return true;
}

void o3_strbuf_append(o3_strbuf_t *buffer, const char *text, size_t length) {
  if (!reserve(buffer, length)) return;
  if (length) memcpy(buffer->text + buffer->length, text, length);
  buffer->length += length;
  buffer->text[buffer->length] = '\0';
}

void o3_strbuf_puts(o3_strbuf_t *buffer, const char *text) { o3_strbuf_append(buffer, text, strlen(text)); }

void o3_strbuf_printf(o3_strbuf_t *buffer, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) buffer->failed = true;
  if (length >= 0 && reserve(buffer, (size_t)length)) {
    vsnprintf(buffer->text + buffer->length, (size_t)length + 1, format, args);
    buffer->length += (size_t)length;
  }
  va_end(args);
}

void o3_strbuf_deinit(o3_strbuf_t *buffer) {
  free(buffer->text);
  *buffer = O3_STRBUF_INIT;
}
