#include "driver/sparse_config.h"

#include <string.h>

#include "base/file.h"
#include "driver/sparse_format.h"

typedef struct line {
  const char *file;
  int number;
  const char *at, *end;
} line_t;

static o3_status_t malformed(const line_t *line, const char *what) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s:%d: %s; a line is PATTERN FORMAT", line->file,
                          line->number, what);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The next word, in quotes when it has spaces in it; NULL at the end of the line. */
static o3_status_t take_word(o3_arena_t *arena, line_t *line, const char **word) {
  *word = NULL;
  while (line->at < line->end && is_space(*line->at)) ++line->at;
  if (line->at == line->end || *line->at == '#') return NULL;
  bool quoted = *line->at == '"';
  const char *start = line->at += quoted;
  while (line->at < line->end && (quoted ? *line->at != '"' : !is_space(*line->at))) ++line->at;
  if (quoted && line->at == line->end) return malformed(line, "a quotation mark is missing");
  *word = o3_arena_strndup(arena, start, (size_t)(line->at - start));
  O3_TRY_ALLOC(*word);
  line->at += quoted;
  return NULL;
}

static o3_status_t read_line(o3_pass_env_t *env, line_t *line, o3_sparse_override_t *overrides) {
  const char *glob, *format, *rest;
  O3_TRY(take_word(env->arena, line, &glob));
  if (!glob) return NULL;
  O3_TRY(take_word(env->arena, line, &format));
  if (!format) return malformed(line, "there is no format");
  O3_TRY(take_word(env->arena, line, &rest));
  if (rest) return malformed(line, "there is more than a pattern and a format");
  O3_TRY_CONTEXT(o3_sparse_format_check(format), "%s:%d", line->file, line->number);
  overrides[env->num_sparse_overrides++] = (o3_sparse_override_t){glob, format};
  return NULL;
}

static o3_status_t read_lines(const o3_mapped_file_t *file, const char *path, o3_pass_env_t *env) {
  const char *at = (const char *)file->data, *end = at + file->size;
  size_t count = 1;
  for (const char *c = at; c < end; ++c) count += *c == '\n';
  o3_sparse_override_t *overrides = O3_ARENA_ARRAY(env->arena, o3_sparse_override_t, count);
  O3_TRY_ALLOC(overrides);
  env->sparse_overrides = overrides;
  for (int number = 1; at < end; ++number) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    line_t line = {path, number, at, stop ? stop : end};
    O3_TRY(read_line(env, &line, overrides));
    at = line.end + 1;
  }
  return NULL;
}

o3_status_t o3_sparse_config_read(const char *path, o3_pass_env_t *env) {
  o3_mapped_file_t file;
  O3_TRY(o3_file_map(path, &file));
  o3_status_t status = read_lines(&file, path, env);
  o3_file_unmap(&file);
  return status;
}
