#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "driver/compilation.h"
#include "package/package.h"

typedef struct owned_result {
  o3_compile_result_t result; /* first: users hold a pointer to it */
  o3_arena_t *arena;
} owned_result_t;

double o3_clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* The high-water mark of this program's own memory, kB. getrusage's also holds that of the program that
 * started this one, up to its exec; it serves where there is no /proc. */
static long own_peak(void) {
  struct rusage self;
  char line[128];
  long kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && !kilobytes && fgets(line, sizeof(line), file))
    if (sscanf(line, "VmHWM: %ld", &kilobytes) != 1) kilobytes = 0;
  if (file) fclose(file);
  if (kilobytes) return kilobytes;
  getrusage(RUSAGE_SELF, &self);
  return self.ru_maxrss;
}

uint64_t o3_peak_rss(void) {
  struct rusage children;
  getrusage(RUSAGE_CHILDREN, &children);
  long self = own_peak();
  return (uint64_t)(self > children.ru_maxrss ? self : children.ru_maxrss) * 1024;
}

static bool copy_tensors(o3_arena_t *arena, const o3_interface_t *interface,
                         const o3_interface_tensor_t *tensors, int count, const o3_compile_tensor_t **out) {
  o3_compile_tensor_t *copies = O3_ARENA_ARRAY(arena, o3_compile_tensor_t, (size_t)count + 1);
  *out = copies;
  for (int i = 0; copies && i < count; ++i) {
    const o3_interface_tensor_t *tensor = &tensors[i];
    o3_compile_tensor_t *copy = &copies[i];
    *copy = (o3_compile_tensor_t){.dtype = o3_dtype_info(tensor->dtype)->name, .rank = tensor->rank};
    if (!(copy->name = o3_arena_strdup(arena, tensor->name))) return false;
    for (int d = 0; d < tensor->rank; ++d) {
      copy->shape[d] = tensor->dims[d].size;
      if (tensor->dims[d].symbol < 0) continue;
      if (!(copy->symbols[d] = o3_arena_strdup(arena, interface->symbols[tensor->dims[d].symbol])))
        return false;
    }
  }
  return copies != NULL;
}

static bool copy_stages(o3_arena_t *arena, const o3_compilation_t *compilation, o3_compile_result_t *result) {
  o3_compile_stage_t *stages = O3_ARENA_ARRAY(arena, o3_compile_stage_t, O3_STAGE_COUNT);
  if (stages) memcpy(stages, compilation->stages, sizeof(compilation->stages));
  result->num_stages = compilation->num_stages;
  result->stages = stages;
  return stages != NULL;
}

static bool fill(o3_arena_t *arena, const o3_compilation_t *compilation, o3_compile_result_t *result) {
  const o3_plan_t *plan = &compilation->plan;
  const o3_interface_t *interface = &compilation->interface;
  if (plan->output && !(result->output = o3_arena_strdup(arena, plan->output))) return false;
  if (plan->output && plan->kind == O3_OUTPUT_ARCHIVE &&
      !(result->header = o3_package_header_path(arena, plan->output)))
    return false;
  struct stat info;
  if (plan->output && !plan->to_stdout && !stat(plan->output, &info))
    result->output_bytes = (uint64_t)info.st_size;
  result->target = plan->target->name;
  result->opt_level = plan->options->opt_level;
  result->num_inputs = interface->num_inputs;
  result->num_outputs = interface->num_outputs;
  return copy_tensors(arena, interface, interface->inputs, interface->num_inputs, &result->inputs) &&
         copy_tensors(arena, interface, interface->outputs, interface->num_outputs, &result->outputs) &&
         copy_stages(arena, compilation, result);
}

o3_status_t o3_result_make(const o3_compilation_t *compilation, double milliseconds,
                           o3_compile_result_t **out) {
  *out = NULL;
  o3_arena_t *arena = o3_arena_create();
  O3_TRY_ALLOC(arena);
  owned_result_t *owned = O3_ARENA_NEW(arena, owned_result_t);
  if (!owned || !fill(arena, compilation, &owned->result)) {
    o3_arena_destroy(arena);
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  owned->arena = arena;
  owned->result.milliseconds = milliseconds;
  owned->result.peak_rss = o3_peak_rss();
  *out = &owned->result;
  return NULL;
}

int32_t o3_result_give(o3_status_t status, char **error) {
  int32_t code = (int32_t)o3_status_code(status);
  *error = status ? strdup(o3_status_message(status)) : NULL;
  o3_status_destroy(status);
  return code;
}

void o3_compile_result_destroy(o3_compile_result_t *result) {
  if (result) o3_arena_destroy(((owned_result_t *)result)->arena);
}
