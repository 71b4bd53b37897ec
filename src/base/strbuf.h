/* A growing string. Zero-initialise or O3_STRBUF_INIT; |text| is always NUL-terminated once written to. */
#ifndef O3_BASE_STRBUF_H
#define O3_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct o3_strbuf {
  char *text;
  size_t length, capacity;
  bool failed; /* memory ran out: the text is incomplete */
} o3_strbuf_t;

#define O3_STRBUF_INIT ((o3_strbuf_t){0})

void o3_strbuf_append(o3_strbuf_t *buffer, const char *text, size_t length);
void o3_strbuf_puts(o3_strbuf_t *buffer, const char *text);
void o3_strbuf_printf(o3_strbuf_t *buffer, const char *format, ...) O3_PRINTF(2, 3);
void o3_strbuf_deinit(o3_strbuf_t *buffer);

#endif
