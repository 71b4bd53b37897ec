#include "run_execute.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fault.h"
#include "run_model.h"
#include "tensorio/tensor.h"

#define BENCH_MS    2000.0
#define BENCH_RUNS  10
#define WARMUP_MS   200.0
#define WARMUP_RUNS 3

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

o3_status_t o3_run_execute_once(o3_session_t *session, const o3_run_slots_t *inputs, o3_tensor_t *outputs,
                                int32_t count) {
  memset(outputs, 0, (size_t)count * sizeof *outputs);
  const o3_code_t code = o3_session_run(session, inputs->tensors, inputs->count, outputs, count);
  return code == O3_OK ? NULL : o3_run_model_failure(code, o3_session_error(session));
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

o3_status_t o3_run_execute_repeat(o3_session_t *session, const o3_run_slots_t *inputs,
                                  const o3_run_slots_t *first, o3_tensor_t *outputs, int64_t times) {
  for (int64_t run = 0; run < times; ++run) {
    O3_TRY(o3_run_execute_once(session, inputs, outputs, first->count));
    for (int32_t i = 0; i < first->count; ++i) {
      O3_TRY(compare_bits(first->infos[i].name, &first->tensors[i], &outputs[i], run + 2));
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

/* Times |runs| runs, or when |runs| is 0 at least |least| and until |budget| milliseconds are over. */
static o3_status_t time_runs(o3_session_t *session, const o3_run_slots_t *inputs, o3_tensor_t *outputs,
                             int32_t count, int64_t runs, int64_t least, double budget,
                             durations_t *durations) {
  const double start = now_ms();
  for (double begin = start;
       runs ? durations->count < runs : durations->count < least || begin - start < budget;) {
    O3_TRY(o3_run_execute_once(session, inputs, outputs, count));
    const double end = now_ms();
    O3_TRY(durations_push(durations, end - begin));
    begin = now_ms();
  }
  return NULL;
}

static o3_status_t warm_up(o3_session_t *session, const o3_run_slots_t *inputs, o3_tensor_t *outputs,
                           int32_t count, int64_t runs, int64_t *done) {
  durations_t durations = {0};
  *done = 0;
  if (runs == 0) return NULL;
  o3_status_t status =
      time_runs(session, inputs, outputs, count, runs > 0 ? runs : 0, WARMUP_RUNS, WARMUP_MS, &durations);
  *done = durations.count;
  free(durations.items);
  return status;
}

o3_status_t o3_run_execute_bench(o3_session_t *session, const o3_run_slots_t *inputs, o3_tensor_t *outputs,
                                 int32_t count, const o3_run_options_t *options, o3_run_times_t *times) {
  durations_t durations = {0};
  O3_TRY(warm_up(session, inputs, outputs, count, options->warmup, &times->warmup));
  o3_status_t status =
      time_runs(session, inputs, outputs, count, options->bench.value, BENCH_RUNS, BENCH_MS, &durations);
  if (!status) o3_run_times_init(durations.items, durations.count, times);
  free(durations.items);
  return status;
}
