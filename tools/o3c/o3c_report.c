#include "o3c_report.h"

#include <cjson/cJSON.h>

/* cJSON keeps numbers as doubles: exact up to 2^53, and files are smaller. */
static void add_number(cJSON *object, const char *key, double value) {
  cJSON_AddNumberToObject(object, key, value);
}

static cJSON *shape_json(const o3_compile_tensor_t *tensor) {
  cJSON *shape = cJSON_CreateArray();
  for (int32_t d = 0; d < tensor->rank; ++d) {
    cJSON *size = tensor->shape[d] >= 0 ? cJSON_CreateNumber((double)tensor->shape[d])
                  : tensor->symbols[d]  ? cJSON_CreateString(tensor->symbols[d])
                                        : cJSON_CreateNull();
    cJSON_AddItemToArray(shape, size);
  }
  return shape;
}

static void add_tensors(cJSON *object, const char *key, const o3_compile_tensor_t *tensors, int32_t count) {
  cJSON *array = cJSON_AddArrayToObject(object, key);
  for (int32_t i = 0; i < count; ++i) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", tensors[i].name);
    cJSON_AddStringToObject(item, "dtype", tensors[i].dtype);
    cJSON_AddItemToObject(item, "shape", shape_json(&tensors[i]));
    cJSON_AddItemToArray(array, item);
  }
}

static void add_stages(cJSON *object, const o3_compile_result_t *result) {
  cJSON *array = cJSON_AddArrayToObject(object, "stages");
  for (int32_t i = 0; i < result->num_stages; ++i) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", result->stages[i].name);
    add_number(item, "ms", result->stages[i].milliseconds);
    add_number(item, "peak_rss", (double)result->stages[i].peak_rss);
    cJSON_AddItemToArray(array, item);
  }
}

/* Prints and deletes |object|. */
static bool print_object(FILE *stream, cJSON *object) {
  char *text = cJSON_PrintUnformatted(object);
  cJSON_Delete(object);
  bool ok = text && fprintf(stream, "%s\n", text) > 0 && !fflush(stream);
  cJSON_free(text);
  return ok;
}

bool o3c_report_json(FILE *stream, const o3_compile_result_t *result) {
  cJSON *object = cJSON_CreateObject();
  if (result->output)
    cJSON_AddStringToObject(object, "output", result->output);
  else
    cJSON_AddNullToObject(object, "output");
  add_number(object, "bytes", (double)result->output_bytes);
  cJSON_AddStringToObject(object, "target", result->target);
  add_number(object, "level", result->opt_level);
  add_number(object, "ms", result->milliseconds);
  add_number(object, "peak_rss", (double)result->peak_rss);
  add_stages(object, result);
  add_tensors(object, "inputs", result->inputs, result->num_inputs);
  add_tensors(object, "outputs", result->outputs, result->num_outputs);
  return print_object(stream, object);
}

bool o3c_report_json_error(FILE *stream, int32_t code, const char *message) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "error", message);
  cJSON_AddStringToObject(object, "code", o3_compile_code_name(code));
  return print_object(stream, object);
}

void o3c_report_bytes(char *text, size_t size, uint64_t bytes) {
  static const char *const UNITS[] = {"kB", "MB", "GB", "TB"};
  double value = (double)bytes / 1e3;
  int unit = 0;
  while (value >= 1e3 && unit < 3) value /= 1e3, ++unit;
  snprintf(text, size, "%.1f %s", value, UNITS[unit]);
}

static void print_timing(FILE *stream, const char *name, double milliseconds, uint64_t peak_rss) {
  char memory[32];
  o3c_report_bytes(memory, sizeof(memory), peak_rss);
  fprintf(stream, "%-10s %10.1f ms %12s\n", name, milliseconds, memory);
}

void o3c_report_timing(FILE *stream, const o3_compile_result_t *result) {
  fprintf(stream, "%-10s %13s %12s\n", "stage", "time", "peak memory");
  for (int32_t i = 0; i < result->num_stages; ++i)
    print_timing(stream, result->stages[i].name, result->stages[i].milliseconds, result->stages[i].peak_rss);
  print_timing(stream, "all", result->milliseconds, result->peak_rss);
}
