#include "schedule/hardware.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "schedule/gpu.h"
#include "schedule/peaks.h"

/* ---- Figures of a struct ---- */

typedef enum figure_kind { FIGURE_INT, FIGURE_INT64, FIGURE_REAL } figure_kind_t;

typedef struct figure {
  const char *key;
  size_t offset;
  figure_kind_t kind;
  double least, most;
} figure_t;

#define FIGURE(type, key, least, most) \
  {#key, offsetof(type, key),          \
   _Generic(((type *)0)->key, int: FIGURE_INT, int64_t: FIGURE_INT64, double: FIGURE_REAL), least, most},

static const figure_t CPU_FIGURES[] = {
#define O3_HARDWARE(key, least, most, what) FIGURE(o3_machine_t, key, least, most)
#include "schedule/hardware.def"
#undef O3_HARDWARE
};
static const figure_t GPU_FIGURES[] = {
#define O3_HARDWARE(key, least, most, what) FIGURE(o3_gpu_t, key, least, most)
#include "schedule/hardware_gpu.def"
#undef O3_HARDWARE
};

/* What a file of one kind may say. */
typedef struct format {
  const char *kind;
  const figure_t *figures;
  int num_figures;
  bool complete; /* all keys must be there */
  bool matrix;   /* and there are matrix instructions */
} format_t;

enum { NUM_CPU_FIGURES = sizeof(CPU_FIGURES) / sizeof(CPU_FIGURES[0]) };
enum { NUM_GPU_FIGURES = sizeof(GPU_FIGURES) / sizeof(GPU_FIGURES[0]) };
static const format_t CPU = {"cpu", CPU_FIGURES, NUM_CPU_FIGURES, false, false};
static const format_t GPU = {"gpu", GPU_FIGURES, NUM_GPU_FIGURES, true, true};

static double get(const figure_t *figure, const void *from) {
  const char *at = (const char *)from + figure->offset;
  switch (figure->kind) {
    case FIGURE_INT:
      return *(const int *)(const void *)at;
    case FIGURE_INT64:
      return (double)*(const int64_t *)(const void *)at;
    case FIGURE_REAL:
      break;
  }
  return *(const double *)(const void *)at;
}

static void set(const figure_t *figure, void *to, double value) {
  char *at = (char *)to + figure->offset;
  switch (figure->kind) {
    case FIGURE_INT:
      *(int *)(void *)at = (int)value;
      break;
    case FIGURE_INT64:
      *(int64_t *)(void *)at = (int64_t)value;
      break;
    case FIGURE_REAL:
      *(double *)(void *)at = value;
      break;
  }
}

static const struct {
  const char *name;
  unsigned bit;
} MATRIX[] = {
#define O3_GPU_MATRIX(id, bit, name, what) {name, bit},
#include "schedule/gpu_matrix.def"
#undef O3_GPU_MATRIX
};
enum { NUM_MATRIX = sizeof(MATRIX) / sizeof(MATRIX[0]) };

/* ---- Reading ---- */

typedef struct reader {
  const char *path;
  const format_t *format;
  const cJSON *object;
} reader_t;

static o3_status_t refuse(const reader_t *r, const char *key, const char *rule) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "hardware file '%s': '%s' %s", r->path, key, rule);
}

static o3_status_t read_figure(const reader_t *r, const figure_t *figure, const cJSON *item, void *to) {
  double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
  bool real = figure->kind == FIGURE_REAL;
  bool fits = value >= figure->least && value <= figure->most;
  if (!fits || (!real && (double)(int64_t)value != value))
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "hardware file '%s': '%s' must be %s from %.15g to %.15g", r->path, figure->key,
                            real ? "a number" : "an integer", figure->least, figure->most);
  set(figure, to, value);
  return NULL;
}

static o3_status_t read_matrix(const reader_t *r, const cJSON *items, unsigned *matrix) {
  const cJSON *item;
  if (!cJSON_IsArray(items)) return refuse(r, "matrix", "must be an array of names of matrix instructions");
  *matrix = 0;
  cJSON_ArrayForEach(item, items) {
    const char *name = cJSON_GetStringValue(item);
    int i = 0;
    while (i < NUM_MATRIX && (!name || strcmp(MATRIX[i].name, name) != 0)) ++i;
    if (i == NUM_MATRIX)
      return o3_status_create(
          O3_STATUS_INVALID_ARGUMENT,
          "hardware file '%s': 'matrix' has '%s', which is no name of matrix instructions", r->path,
          name ? name : "what is no text");
    *matrix |= MATRIX[i].bit;
  }
  return NULL;
}

static bool is_other_key(const format_t *format, const char *key) {
  return !strcmp(key, "kind") || (format->matrix && !strcmp(key, "matrix"));
}

static o3_status_t check_keys(const reader_t *r) {
  const cJSON *item;
  cJSON_ArrayForEach(item, r->object) {
    int i = 0;
    while (i < r->format->num_figures && strcmp(r->format->figures[i].key, item->string) != 0) ++i;
    if (i == r->format->num_figures && !is_other_key(r->format, item->string))
      return refuse(r, item->string, "is no key of it; o3c --print-hardware shows them");
    if (cJSON_GetObjectItemCaseSensitive(r->object, item->string) != item)
      return refuse(r, item->string, "is there twice");
  }
  return NULL;
}

static o3_status_t check_kind(const reader_t *r) {
  const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->object, "kind"));
  if (cJSON_IsObject(r->object) && kind && !strcmp(kind, r->format->kind)) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          "hardware file '%s': 'kind' must be \"%s\", of a JSON object", r->path,
                          r->format->kind);
}

static o3_status_t read_figures(const reader_t *r, void *to) {
  O3_TRY(check_kind(r));
  O3_TRY(check_keys(r));
  for (int i = 0; i < r->format->num_figures; ++i) {
    const figure_t *figure = &r->format->figures[i];
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->object, figure->key);
    if (item) O3_TRY(read_figure(r, figure, item, to));
    if (!item && r->format->complete)
      return refuse(r, figure->key, "is missing; o3c --print-hardware shows all keys");
  }
  return NULL;
}

/* ---- Rules ---- */

static bool is_power_of_two(int64_t value) { return (value & (value - 1)) == 0; }

/* Code for wider or more registers than the target has would not run there. */
static o3_status_t check_vectors(const reader_t *r, const o3_machine_t *read, const o3_machine_t *target) {
  if (!is_power_of_two(read->vector_bytes) || read->vector_bytes > target->vector_bytes)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "hardware file '%s': 'vector_bytes' is %d, it must be 16, 32 or 64 and at most "
                            "the target's %d",
                            r->path, read->vector_bytes, target->vector_bytes);
  if (!is_power_of_two(read->vector_registers) || read->vector_registers > target->vector_registers)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "hardware file '%s': 'vector_registers' is %d, it must be 16 or 32 and at most "
                            "the target's %d",
                            r->path, read->vector_registers, target->vector_registers);
  bool pairs = (read->vector_registers == 32) == (read->vector_bytes == 64);
  return pairs ? NULL : refuse(r, "vector_registers", "must be 32 with vectors of 64 bytes, else 16");
}

static o3_status_t check_bound(const reader_t *r, const char *key, int64_t value, const char *rule,
                               int64_t bound, bool fits) {
  if (fits) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          "hardware file '%s': '%s' is %" PRId64 ", it must be %s %" PRId64, r->path, key,
                          value, rule, bound);
}

/* Instructions that the target's architecture lacks would not run there; versions of PTX before the target's
 * do not know it. */
static o3_status_t check_gpu(const reader_t *r, const o3_gpu_t *read, const o3_gpu_t *target) {
  O3_TRY(check_bound(r, "sm", read->sm, "the target's", target->sm, read->sm == target->sm));
  O3_TRY(check_bound(r, "ptx", read->ptx, "at least the target's", target->ptx, read->ptx >= target->ptx));
  O3_TRY(check_bound(r, "cluster", read->cluster, "at most the target's", target->cluster,
                     read->cluster <= target->cluster));
  O3_TRY(check_bound(r, "shared_per_block", read->shared_per_block, "at most shared_per_sm,",
                     read->shared_per_sm, read->shared_per_block <= read->shared_per_sm));
  for (int i = 0; i < NUM_MATRIX; ++i) {
    if (read->matrix & MATRIX[i].bit & ~target->matrix)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "hardware file '%s': 'matrix' has '%s', which target '%s' lacks", r->path,
                              MATRIX[i].name, target->name);
  }
  return NULL;
}

static o3_status_t apply_cpu(reader_t *r, o3_machine_t *machine) {
  o3_machine_t read = *machine;
  r->format = &CPU;
  O3_TRY(read_figures(r, &read));
  O3_TRY(check_vectors(r, &read, machine));
  *machine = read;
  return NULL;
}

static o3_status_t apply_gpu(reader_t *r, o3_arena_t *arena, o3_machine_t *machine) {
  o3_gpu_t *read = O3_ARENA_NEW(arena, o3_gpu_t);
  O3_TRY_ALLOC(read);
  *read = *machine->gpu;
  r->format = &GPU;
  O3_TRY(read_figures(r, read));
  const cJSON *matrix = cJSON_GetObjectItemCaseSensitive(r->object, "matrix");
  if (!matrix) return refuse(r, "matrix", "is missing; o3c --print-hardware shows all keys");
  O3_TRY(read_matrix(r, matrix, &read->matrix));
  O3_TRY(check_gpu(r, read, machine->gpu));
  machine->gpu = read;
  return NULL;
}

o3_status_t o3_hardware_read(const char *path, o3_arena_t *arena, o3_machine_t *machine) {
  o3_mapped_file_t file;
  O3_TRY(o3_file_map(path, &file));
  const char *text = (const char *)file.data, *end = text;
  cJSON *object = cJSON_ParseWithLengthOpts(text, file.size, &end, false);
  while (object && end < text + file.size && strchr(" \t\r\n", *end) && *end) ++end;
  bool more = object && end < text + file.size;
  o3_file_unmap(&file);
  if (more) {
    cJSON_Delete(object);
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "hardware file '%s' is more than one JSON object",
                            path);
  }
  if (!object) return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "hardware file '%s' is no JSON", path);
  reader_t r = {.path = path, .object = object};
  o3_status_t status = machine->gpu ? apply_gpu(&r, arena, machine) : apply_cpu(&r, machine);
  cJSON_Delete(object);
  return status;
}

/* ---- Measuring and printing ---- */

o3_status_t o3_hardware_measure(o3_machine_t *machine) {
  o3_peaks_t peaks;
  O3_TRY(o3_peaks_measure(machine->cores, &peaks));
  machine->memory_gbps = peaks.copy_bytes < 1e9 ? 1 : (int)(peaks.copy_bytes * 1e-9);
  machine->fma_ports = o3_peaks_fma_ports(machine->vector_bytes);
  return NULL;
}

static void print_matrix(o3_strbuf_t *text, unsigned matrix) {
  const char *separator = "";
  o3_strbuf_puts(text, ",\n  \"matrix\": [");
  for (int i = 0; i < NUM_MATRIX; ++i) {
    if (!(matrix & MATRIX[i].bit)) continue;
    o3_strbuf_printf(text, "%s\"%s\"", separator, MATRIX[i].name);
    separator = ", ";
  }
  o3_strbuf_puts(text, "]");
}

char *o3_hardware_print(const o3_machine_t *machine) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  const format_t *format = machine->gpu ? &GPU : &CPU;
  const void *from = machine->gpu ? (const void *)machine->gpu : (const void *)machine;
  o3_strbuf_printf(&text, "{\n  \"kind\": \"%s\"", format->kind);
  if (machine->gpu) print_matrix(&text, machine->gpu->matrix);
  for (int i = 0; i < format->num_figures; ++i)
    o3_strbuf_printf(&text, ",\n  \"%s\": %.15g", format->figures[i].key, get(&format->figures[i], from));
  o3_strbuf_puts(&text, "\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
