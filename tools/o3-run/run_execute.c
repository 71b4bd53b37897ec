#include "run_execute.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fault.h"
#include "run_model.h"
#include "tensorio/tensor.h"

/* How long to go on when no number is given: at least |least| runs, at most |most|, until |budget_ms| is
 * over. More than the most would tell nothing new. */
typedef struct amount {
  int64_t least, most;
  double budget_ms;
} amount_t;

static const amount_t bench_amount = {.least = 10, .most = 1000000, .budget_ms = 2000};
static const amount_t warmup_amount = {.least = 3, .most = 1000000, .budget_ms = 200};

double o3_run_now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

o3_status_t o3_run_execute_once(const o3_run_binding_t *binding) {
  memset(binding->outputs, 0, (size_t)binding->num_outputs * sizeof *binding->outputs);
  const o3_code_t code = o3_session_run(binding->session, binding->inputs->tensors, binding->inputs->count,
                                        binding->outputs, binding->num_outputs);
  return code == O3_OK ? NULL : o3_run_model_failure(code, o3_session_error(binding->session));
}

static o3_status_t compare_bits(const char *name, const o3_tensor_t *first, const o3_tensor_t *again,
                                int64_t run) {
  size_t bytes;
  O3_TRY_CONTEXT(o3_tensorio_measure(again, NULL, &bytes), "output '%s'", name);
  const size_t shape_bytes = (size_t)again->rank * sizeof *again->shape;
  const bool alike = first->dtype == again->dtype && first->rank == again->rank &&
                     !memcmp(first->shape, again->shape, shape_bytes) &&
                     (!bytes || !memcmp(first->data, again->data, bytes));
  if (alike) return NULL;
  return o3_status_create(
      O3_STATUS_INVALID_MODEL,
      "run %" PRId64 " gives other bits than the first in output '%s': --repeat expects the same", run, name);
}

o3_status_t o3_run_execute_repeat(const o3_run_binding_t *binding, const o3_run_slots_t *first,
                                  int64_t times) {
  for (int64_t run = 0; run < times; ++run) {
    O3_TRY(o3_run_execute_once(binding));
    for (int32_t i = 0; i < first->count; ++i) {
      O3_TRY(compare_bits(first->infos[i].name, &first->tensors[i], &binding->outputs[i], run + 2));
    }
  }
  return NULL;
}

/* Durations in milliseconds, growing: how many runs fit the time is not known before. */
typedef struct durations {
  double *items;
  int64_t count, capacity;
} durations_t;

static o3_status_t durations_push(durations_t *durations, double value) {
  if (durations->count == durations->capacity) {
    const int64_t capacity = durations->capacity ? 2 * durations->capacity : 1024;
    double *items = o3_fault_realloc(durations->items, (size_t)capacity * sizeof *items);
    if (!items)
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory for %" PRId64 " times", capacity);
    durations->items = items;
    durations->capacity = capacity;
  }
  durations->items[durations->count++] = value;
  return NULL;
}

static o3_status_t time_runs(const o3_run_binding_t *binding, const amount_t *amount,
                             durations_t *durations) {
  const double start = o3_run_now_ms();
  for (double begin = start; durations->count < amount->least ||
                             (durations->count < amount->most && begin - start < amount->budget_ms);) {
    O3_TRY(o3_run_execute_once(binding));
    const double end = o3_run_now_ms();
    O3_TRY(durations_push(durations, end - begin));
    begin = o3_run_now_ms();
  }
  return NULL;
}

/* Exactly |runs| runs. */
static amount_t exactly(int64_t runs) { return (amount_t){.least = runs, .most = runs}; }

o3_status_t o3_run_execute_warmup(const o3_run_binding_t *binding, const o3_run_options_t *options,
                                  int64_t *done) {
  durations_t durations = {0};
  const int64_t runs = options->warmup;
  const amount_t amount = runs >= 0 ? exactly(runs) : warmup_amount;
  o3_status_t status = time_runs(binding, &amount, &durations);
  *done = durations.count;
  free(durations.items);
  return status;
}

o3_status_t o3_run_execute_bench(const o3_run_binding_t *binding, const o3_run_options_t *options,
                                 o3_run_times_t *times) {
  durations_t durations = {0};
  const amount_t amount = options->bench.value ? exactly(options->bench.value) : bench_amount;
  O3_TRY(o3_run_execute_warmup(binding, options, &times->warmup));
  o3_status_t status = time_runs(binding, &amount, &durations);
  if (!status) o3_run_times_init(durations.items, durations.count, times);
  free(durations.items);
  return status;
}
