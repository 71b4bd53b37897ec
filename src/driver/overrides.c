#include "driver/overrides.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A whole decimal number >= 0 that ends at |end|, which must be there. */
static bool scan_size(const char *text, const char *end, int64_t *size) {
  char *stop;
  errno = 0;
  const long long value = strtoll(text, &stop, 10);
  *size = value;
  return *text >= '0' && *text <= '9' && !errno && stop == end;
}

/* Whether a number behind |mark| is one that no int64_t holds. */
static bool has_huge_number(const char *text, char mark) {
  const char *at = strrchr(text, mark);
  while (at && *at) {
    errno = 0;
    if (strtoll(++at, NULL, 10) == LLONG_MAX && errno == ERANGE) return true;
    at += strcspn(at, "x");
  }
  return false;
}

static o3_status_t malformed(const char *what, const char *text, char mark, const char *rule) {
  if (has_huge_number(text, mark))
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s '%s' has a number beyond %" PRId64, what, text,
                            INT64_MAX);
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s '%s' is not of the form %s", what, text, rule);
}

/* A copy of the |count| old items with room for one more: command lines are short. */
static void *grown(o3_arena_t *arena, const void *old, int32_t count, size_t size) {
  void *items = o3_arena_alloc(arena, (size_t)count + 1, size);
  if (items && count) memcpy(items, old, (size_t)count * size);
  return items;
}

/* Names may hold '=' and ':' themselves: the last one counts. */
static o3_status_t scan_named_size(o3_arena_t *arena, const char *what, const char *rule, const char *text,
                                   const char **name, int64_t *size) {
  const char *equals = strrchr(text, '=');
  if (!equals || equals == text || !scan_size(equals + 1, text + strlen(text), size))
    return malformed(what, text, '=', rule);
  *name = o3_arena_strndup(arena, text, (size_t)(equals - text));
  O3_TRY_ALLOC(*name);
  return NULL;
}

o3_status_t o3_overrides_add_dim(o3_arena_t *arena, const char *text, o3_compile_options_t *options) {
  o3_compile_dim_t dim;
  O3_TRY(scan_named_size(arena, "dimension", "NAME=SIZE", text, &dim.name, &dim.size));
  o3_compile_dim_t *dims = grown(arena, options->dims, options->num_dims, sizeof(dim));
  O3_TRY_ALLOC(dims);
  dims[options->num_dims++] = dim;
  options->dims = dims;
  return NULL;
}

/* "1x3x?x224" */
static bool scan_shape(const char *text, o3_compile_shape_t *shape) {
  while (shape->rank < O3_COMPILE_MAX_RANK) {
    const char *end = text + strcspn(text, "x");
    int64_t *size = &shape->sizes[shape->rank++];
    if (end - text == 1 && *text == '?') {
      *size = -1;
    } else if (!scan_size(text, end, size)) {
      return false;
    }
    if (!*end) return true;
    text = end + 1;
  }
  return false;
}

o3_status_t o3_overrides_add_shape(o3_arena_t *arena, const char *text, o3_compile_options_t *options) {
  const char *colon = strrchr(text, ':');
  o3_compile_shape_t shape = {0};
  if (!colon || colon == text || !scan_shape(colon + 1, &shape))
    return malformed("shape", text, ':', "NAME:1x3x224x224");
  o3_compile_shape_t *shapes = grown(arena, options->shapes, options->num_shapes, sizeof(shape));
  shape.input = o3_arena_strndup(arena, text, (size_t)(colon - text));
  O3_TRY_ALLOC(shapes && shape.input);
  shapes[options->num_shapes++] = shape;
  options->shapes = shapes;
  return NULL;
}

o3_status_t o3_overrides_add_value(o3_arena_t *arena, const char *text, o3_compile_options_t *options) {
  o3_compile_value_t value;
  O3_TRY(scan_named_size(arena, "value", "NAME=NUMBER", text, &value.input, &value.value));
  o3_compile_value_t *values = grown(arena, options->values, options->num_values, sizeof(value));
  O3_TRY_ALLOC(values);
  values[options->num_values++] = value;
  options->values = values;
  return NULL;
}

static o3_status_t refuse_twice(const char *what, const char *name) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "%s '%s' is given twice", what, name);
}

/* Each name once, lest one of two wishes be dropped without a word. */
static o3_status_t check_once(const o3_compile_options_t *options) {
  for (int i = 0; i < options->num_dims; ++i)
    for (int k = 0; k < i; ++k)
      if (!strcmp(options->dims[i].name, options->dims[k].name))
        return refuse_twice("dimension", options->dims[i].name);
  for (int i = 0; i < options->num_shapes; ++i)
    for (int k = 0; k < i; ++k)
      if (!strcmp(options->shapes[i].input, options->shapes[k].input))
        return refuse_twice("the shape of input", options->shapes[i].input);
  for (int i = 0; i < options->num_values; ++i)
    for (int k = 0; k < i; ++k)
      if (!strcmp(options->values[i].input, options->values[k].input))
        return refuse_twice("the value of input", options->values[i].input);
  return NULL;
}

static o3_status_t check(const o3_compile_options_t *options) {
  for (int i = 0; i < options->num_dims; ++i)
    if (options->dims[i].size < 0)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "dimension '%s' is set to %lld, 0 or more is needed", options->dims[i].name,
                              (long long)options->dims[i].size);
  for (int i = 0; i < options->num_values; ++i)
    if (options->values[i].value < 0)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "input '%s' is set to %lld, 0 or more is needed",
                              options->values[i].input, (long long)options->values[i].value);
  for (int i = 0; i < options->num_shapes; ++i)
    if (options->shapes[i].rank < 0 || options->shapes[i].rank > O3_IR_MAX_RANK)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "input '%s' is given rank %d, 0 to %d is possible",
                              options->shapes[i].input, options->shapes[i].rank, O3_IR_MAX_RANK);
  return NULL;
}

o3_status_t o3_overrides_apply(o3_arena_t *arena, const o3_compile_options_t *options, o3_pass_env_t *env) {
  O3_TRY(check(options));
  O3_TRY(check_once(options));
  o3_dim_override_t *dims = O3_ARENA_ARRAY(arena, o3_dim_override_t, (size_t)options->num_dims + 1);
  o3_shape_override_t *shapes = O3_ARENA_ARRAY(arena, o3_shape_override_t, (size_t)options->num_shapes + 1);
  o3_value_override_t *values = O3_ARENA_ARRAY(arena, o3_value_override_t, (size_t)options->num_values + 1);
  O3_TRY_ALLOC(dims && shapes && values);
  for (int i = 0; i < options->num_dims; ++i)
    dims[i] = (o3_dim_override_t){options->dims[i].name, options->dims[i].size};
  for (int i = 0; i < options->num_shapes; ++i) {
    const o3_compile_shape_t *shape = &options->shapes[i];
    shapes[i] = (o3_shape_override_t){.input = shape->input, .rank = shape->rank};
    memcpy(shapes[i].sizes, shape->sizes, (size_t)shape->rank * sizeof(shape->sizes[0]));
  }
  for (int i = 0; i < options->num_values; ++i)
    values[i] = (o3_value_override_t){options->values[i].input, options->values[i].value};
  env->num_values = options->num_values;
  env->values = values;
  env->num_dims = options->num_dims;
  env->dims = dims;
  env->num_shapes = options->num_shapes;
  env->shapes = shapes;
  return NULL;
}
