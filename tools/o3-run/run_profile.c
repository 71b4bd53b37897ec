/* Medians of each kernel over the runs, so that one disturbed run does not show. */
#include "run_profile.h"

#include <stdlib.h>

#include "base/fault.h"

/* A second or two, but no more numbers than memory has place for at ease. */
enum { LEAST_RUNS = 10, MOST_RUNS = 2000 };
static const double BUDGET_MS = 2000;

typedef struct collector {
  const o3_run_binding_t *binding;
  int32_t width; /* numbers a run: whole run, each kernel, what is outside */
  int64_t runs, capacity;
  double *times; /* ms, run after run */
} collector_t;

static o3_status_t read_sample(const o3_run_binding_t *binding, int32_t index, o3_kernel_sample_t *sample) {
  o3_code_t code = o3_session_kernel(binding->session, index, sample);
  return code == O3_OK ? NULL : o3_run_model_failure(code, "the model does not tell what a kernel took");
}

/* Kernel of column |index|. */
static int32_t kernel_of(const collector_t *self, int32_t index) {
  return index == self->width - 2 ? O3_NO_KERNEL : index;
}

static o3_status_t add_run(collector_t *self) {
  if (self->runs == self->capacity) {
    int64_t capacity = self->capacity ? 2 * self->capacity : 64;
    size_t bytes = (size_t)capacity * (size_t)self->width * sizeof(double);
    double *times = o3_fault_realloc(self->times, bytes);
    if (!times) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory for a profile");
    self->times = times;
    self->capacity = capacity;
  }
  double *row = self->times + self->runs * self->width, start = o3_run_now_ms();
  O3_TRY(o3_run_execute_once(self->binding));
  row[0] = o3_run_now_ms() - start;
  for (int32_t i = 0; i < self->width - 1; ++i) {
    o3_kernel_sample_t sample;
    O3_TRY(read_sample(self->binding, kernel_of(self, i), &sample));
    row[i + 1] = (double)sample.nanoseconds * 1e-6;
  }
  ++self->runs;
  return NULL;
}

static o3_status_t collect(collector_t *self, int64_t runs) {
  double start = o3_run_now_ms();
  for (;;) {
    double spent = o3_run_now_ms() - start;
    bool enough = self->runs >= LEAST_RUNS && spent >= BUDGET_MS;
    if (runs ? self->runs == runs : enough || self->runs == MOST_RUNS) return NULL;
    O3_TRY(add_run(self));
  }
}

/* ---- Summing up ---- */

static o3_status_t median(const collector_t *self, int32_t column, double *value) {
  o3_run_times_t times;
  double *sorted = o3_fault_malloc((size_t)self->runs * sizeof *sorted);
  if (!sorted) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory for a profile");
  for (int64_t i = 0; i < self->runs; ++i) sorted[i] = self->times[i * self->width + column];
  o3_run_times_init(sorted, self->runs, &times);
  free(sorted);
  *value = times.median;
  return NULL;
}

static o3_status_t sum_up_kernel(const collector_t *self, const o3_run_model_t *model, int32_t index,
                                 o3_run_kernel_t *kernel) {
  int32_t number = kernel_of(self, index);
  kernel->info = (o3_kernel_info_t){.name = "outside of kernels", .kind = ""};
  O3_TRY(read_sample(self->binding, number, &kernel->sample));
  if (number != O3_NO_KERNEL && o3_kernel_info(model->model, number, &kernel->info) != O3_OK)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the model does not describe its kernel %d", number);
  O3_TRY(median(self, index + 1, &kernel->ms));
  if (kernel->ms > 0) {
    kernel->flops = kernel->sample.operations / kernel->ms * 1e3;
    kernel->bytes = kernel->sample.bytes / kernel->ms * 1e3;
  }
  return NULL;
}

static o3_status_t sum_up(const collector_t *self, const o3_run_model_t *model, o3_arena_t *arena,
                          o3_run_profile_t *profile) {
  double sum = 0;
  profile->runs = self->runs;
  profile->num_kernels = self->width - 2;
  profile->kernels = O3_ARENA_ARRAY(arena, o3_run_kernel_t, (size_t)self->width);
  O3_TRY_ALLOC(profile->kernels);
  O3_TRY(median(self, 0, &profile->run_ms));
  for (int32_t i = 0; i < self->width - 1; ++i) {
    O3_TRY(sum_up_kernel(self, model, i, &profile->kernels[i]));
    sum += profile->kernels[i].ms;
  }
  for (int32_t i = 0; sum > 0 && i < self->width - 1; ++i)
    profile->kernels[i].share = profile->kernels[i].ms / sum;
  return NULL;
}

static o3_status_t measure(collector_t *self, const o3_run_model_t *model, const o3_run_options_t *options,
                           o3_arena_t *arena, o3_run_profile_t *profile) {
  int64_t warmup;
  O3_TRY(o3_run_execute_warmup(self->binding, options, &warmup));
  O3_TRY(collect(self, options->profile.value));
  return sum_up(self, model, arena, profile);
}

o3_status_t o3_run_profile_make(const o3_run_model_t *model, const o3_run_binding_t *binding,
                                const o3_run_options_t *options, o3_arena_t *arena,
                                o3_run_profile_t *profile) {
  collector_t self = {.binding = binding, .width = model->info.num_kernels + 2};
  *profile =
      (o3_run_profile_t){.threads = options->threads ? (int32_t)options->threads : o3_peaks_cpu_count()};
  profile->gpu = o3_gpu_find(model->info.target);
  if (profile->gpu) {
    profile->threads = 1;
    profile->peaks = (o3_peaks_t){.fma_flops = profile->gpu->fp32_tflops * 1e12,
                                  .copy_bytes = profile->gpu->memory_gbps * 1e9};
  }
  o3_code_t code = o3_session_profile(binding->session, 1);
  if (code != O3_OK) return o3_run_model_failure(code, o3_last_error(model->model));
  o3_status_t status = measure(&self, model, options, arena, profile);
  free(self.times);
  (void)o3_session_profile(binding->session, 0); /* turning off cannot fail */
  if (status || profile->gpu) return status;
  return o3_peaks_measure(profile->threads, &profile->peaks);
}
