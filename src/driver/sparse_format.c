#include "driver/sparse_format.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "o3/compiler.h"

typedef struct format_row {
  const char *pattern;
  const char *summary;
} format_row_t;

static const format_row_t FORMATS[] = {
#define O3_SPARSE_FORMAT(pattern, summary) {pattern, summary},
#include "driver/sparse_formats.def"
#undef O3_SPARSE_FORMAT
};
enum { NUM_FORMATS = sizeof(FORMATS) / sizeof(FORMATS[0]) };

/* A capital letter of the pattern matches one or more digits. */
static bool matches(const char *pattern, const char *text) {
  for (; *pattern; ++pattern) {
    if (!isupper((unsigned char)*pattern)) {
      if (*text++ != *pattern) return false;
      continue;
    }
    if (!isdigit((unsigned char)*text)) return false;
    while (isdigit((unsigned char)*text)) ++text;
  }
  return !*text;
}

static o3_status_t refuse(const char *format) {
  o3_strbuf_t list = O3_STRBUF_INIT;
  for (int i = 0; i < NUM_FORMATS; ++i)
    o3_strbuf_printf(&list, "%s%s", list.length ? ", " : "", FORMATS[i].pattern);
  o3_status_t status = o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                                        "sparse format '%s' is unknown; supported: %s", format, list.text);
  o3_strbuf_deinit(&list);
  return status;
}

/* Blocks larger than that are no blocks of any weight. */
static o3_status_t check_numbers(const char *format) {
  enum { MOST = 4096 };
  for (const char *at = format; *at;) {
    char *end = (char *)(uintptr_t)at + 1;
    long number = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : 1;
    if (number < 1 || number > MOST)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "sparse format '%s' has a number outside of 1 to %d", format, MOST);
    at = end;
  }
  return NULL;
}

o3_status_t o3_sparse_format_check(const char *format) {
  for (int i = 0; i < NUM_FORMATS; ++i)
    if (matches(FORMATS[i].pattern, format)) return check_numbers(format);
  return refuse(format);
}

const char *o3_compile_sparse_format(int32_t index, const char **summary) {
  if (index < 0 || index >= NUM_FORMATS) return NULL;
  *summary = FORMATS[index].summary;
  return FORMATS[index].pattern;
}
