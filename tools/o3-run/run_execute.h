/* Runs a set of inputs: the result, whether it repeats, how long it takes. */
#ifndef O3_RUN_EXECUTE_H
#define O3_RUN_EXECUTE_H

#include "base/status.h"
#include "o3/model.h"
#include "run_options.h"
#include "run_result.h"
#include "run_slots.h"

/* A session with what it runs on. |outputs|, |num_outputs| of them, point to the session's memory until
 * its next run. All borrowed. */
typedef struct o3_run_binding {
  o3_session_t *session;
  const o3_run_slots_t *inputs;
  o3_tensor_t *outputs;
  int32_t num_outputs;
} o3_run_binding_t;

/* One run. */
o3_status_t o3_run_execute_once(const o3_run_binding_t *binding) O3_MUST_USE;

/* Runs |times| times more, and fails (INVALID_MODEL, naming the output) when a bit of the outputs differs
 * from |first|. */
o3_status_t o3_run_execute_repeat(const o3_run_binding_t *binding, const o3_run_slots_t *first, int64_t times)
    O3_MUST_USE;

double o3_run_now_ms(void); /* of a steady clock */

/* Runs as --warmup says, and how often. */
o3_status_t o3_run_execute_warmup(const o3_run_binding_t *binding, const o3_run_options_t *options,
                                  int64_t *done) O3_MUST_USE;

/* Warms up and times as --bench and --warmup say. */
o3_status_t o3_run_execute_bench(const o3_run_binding_t *binding, const o3_run_options_t *options,
                                 o3_run_times_t *times) O3_MUST_USE;

#endif
