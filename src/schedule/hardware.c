#include "schedule/hardware.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "schedule/peaks.h"

typedef struct figures {
#define O3_HARDWARE(key, least, most, what) int64_t key;
#include "schedule/hardware.def"
#undef O3_HARDWARE
} figures_t;

static const struct {
  const char *key;
  size_t offset;
  int64_t least, most;
} KEYS[] = {
#define O3_HARDWARE(key, least, most, what) {#key, offsetof(figures_t, key), least, most},
#include "schedule/hardware.def"
#undef O3_HARDWARE
};
enum { NUM_KEYS = sizeof(KEYS) / sizeof(KEYS[0]) };

static figures_t figures_of(const o3_machine_t *machine) {
  return (figures_t){
#define O3_HARDWARE(key, least, most, what) .key = machine->key,
#include "schedule/hardware.def"
#undef O3_HARDWARE
  };
}

static o3_status_t refuse(const char *path, const char *key, const char *rule) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "hardware file '%s': '%s' %s", path, key, rule);
}

static o3_status_t read_figure(const char *path, const cJSON *item, figures_t *figures) {
  for (size_t i = 0; i < NUM_KEYS; ++i) {
    if (strcmp(KEYS[i].key, item->string) != 0) continue;
    double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
    bool fits = value >= (double)KEYS[i].least && value <= (double)KEYS[i].most;
    if (!fits || (double)(int64_t)value != value)
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "hardware file '%s': '%s' must be an integer from %" PRId64 " to %" PRId64,
                              path, item->string, KEYS[i].least, KEYS[i].most);
    *(int64_t *)((char *)figures + KEYS[i].offset) = (int64_t)value;
    return NULL;
  }
  return refuse(path, item->string, "is no key of it; o3c --print-hardware shows them");
}

static o3_status_t read_figures(const char *path, const cJSON *object, figures_t *figures) {
  const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "kind"));
  if (!cJSON_IsObject(object) || !kind || strcmp(kind, "cpu") != 0)
    return refuse(path, "kind", "must be \"cpu\", of a JSON object");
  const cJSON *item;
  cJSON_ArrayForEach(item, object) {
    if (strcmp(item->string, "kind") != 0) O3_TRY(read_figure(path, item, figures));
  }
  return NULL;
}

static bool is_power_of_two(int64_t value) { return (value & (value - 1)) == 0; }

/* Code for wider or more registers than the target has would not run there. */
static o3_status_t check_vectors(const char *path, const figures_t *figures, const o3_machine_t *machine) {
  if (!is_power_of_two(figures->vector_bytes) || figures->vector_bytes > machine->vector_bytes)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "hardware file '%s': 'vector_bytes' is %" PRId64
                            ", it must be 16, 32 or 64 and at most the target's %d",
                            path, figures->vector_bytes, machine->vector_bytes);
  if (!is_power_of_two(figures->vector_registers) || figures->vector_registers > machine->vector_registers)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "hardware file '%s': 'vector_registers' is %" PRId64
                            ", it must be 16 or 32 and at most the target's %d",
                            path, figures->vector_registers, machine->vector_registers);
  bool pairs = (figures->vector_registers == 32) == (figures->vector_bytes == 64);
  return pairs ? NULL : refuse(path, "vector_registers", "must be 32 with vectors of 64 bytes, else 16");
}

static o3_status_t apply(const char *path, const cJSON *object, o3_machine_t *machine) {
  figures_t figures = figures_of(machine);
  O3_TRY(read_figures(path, object, &figures));
  O3_TRY(check_vectors(path, &figures, machine));
#define O3_HARDWARE(key, least, most, what) machine->key = (__typeof__(machine->key))figures.key;
#include "schedule/hardware.def"
#undef O3_HARDWARE
  return NULL;
}

o3_status_t o3_hardware_read(const char *path, o3_machine_t *machine) {
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
  o3_status_t status = apply(path, object, machine);
  cJSON_Delete(object);
  return status;
}

o3_status_t o3_hardware_measure(o3_machine_t *machine) {
  o3_peaks_t peaks;
  O3_TRY(o3_peaks_measure(machine->cores, &peaks));
  machine->memory_gbps = peaks.copy_bytes < 1e9 ? 1 : (int)(peaks.copy_bytes * 1e-9);
  machine->fma_ports = o3_peaks_fma_ports(machine->vector_bytes);
  return NULL;
}

char *o3_hardware_print(const o3_machine_t *machine) {
  o3_strbuf_t text = O3_STRBUF_INIT;
  figures_t figures = figures_of(machine);
  o3_strbuf_puts(&text, "{\n  \"kind\": \"cpu\"");
  for (size_t i = 0; i < NUM_KEYS; ++i)
    o3_strbuf_printf(&text, ",\n  \"%s\": %" PRId64, KEYS[i].key,
                     *(const int64_t *)((const char *)&figures + KEYS[i].offset));
  o3_strbuf_puts(&text, "\n}\n");
  if (text.failed) o3_strbuf_deinit(&text);
  return text.text;
}
