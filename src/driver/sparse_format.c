#include "driver/sparse_format.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "o3/compiler.h"

typedef struct format_row {
  const char *pattern;
  bool supported;
  const char *summary;
} format_row_t;

static const format_row_t FORMATS[] = {
#define O3_SPARSE_FORMAT(pattern, supported, summary) {pattern, supported, summary},
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

static o3_status_t refuse(o3_status_code_t code, const char *format, const char *why) {
  o3_strbuf_t list = O3_STRBUF_INIT;
  for (int i = 0; i < NUM_FORMATS; ++i)
    if (FORMATS[i].supported) o3_strbuf_printf(&list, "%s%s", list.length ? ", " : "", FORMATS[i].pattern);
  o3_status_t status =
      o3_status_create(code, "sparse format '%s' is %s; supported: %s", format, why, list.text);
  o3_strbuf_deinit(&list);
  return status;
}

o3_status_t o3_sparse_format_check(const char *format) {
  for (int i = 0; i < NUM_FORMATS; ++i) {
    if (!matches(FORMATS[i].pattern, format)) continue;
    return FORMATS[i].supported ? NULL : refuse(O3_STATUS_UNSUPPORTED, format, "not supported yet");
  }
  return refuse(O3_STATUS_INVALID_ARGUMENT, format, "unknown");
}

const char *o3_compile_sparse_format(int32_t index, const char **summary) {
  int seen = 0;
  for (int i = 0; i < NUM_FORMATS; ++i) {
    if (!FORMATS[i].supported || seen++ != index) continue;
    *summary = FORMATS[i].summary;
    return FORMATS[i].pattern;
  }
  return NULL;
}
