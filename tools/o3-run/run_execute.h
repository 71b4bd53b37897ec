/* Runs a set of inputs: the result, whether it repeats, how long it takes. */
#ifndef O3_RUN_EXECUTE_H
#define O3_RUN_EXECUTE_H

#include "base/status.h"
#include "o3/model.h"
#include "run_options.h"
#include "run_result.h"
#include "run_slots.h"

/* One run: |outputs|, |count| of them, point to the session's memory until the next run. */
o3_status_t o3_run_execute_once(o3_session_t *session, const o3_run_slots_t *inputs, o3_tensor_t *outputs,
                                int32_t count) O3_MUST_USE;

/* Runs |times| times more, and fails (INVALID_MODEL, naming output and element) when a bit of the
 * outputs differs from |first|. |outputs| are those of the last run. */
o3_status_t o3_run_execute_repeat(o3_session_t *session, const o3_run_slots_t *inputs,
                                  const o3_run_slots_t *first, o3_tensor_t *outputs, int64_t times)
    O3_MUST_USE;

/* Warms up and times as --bench and --warmup say. */
o3_status_t o3_run_execute_bench(o3_session_t *session, const o3_run_slots_t *inputs, o3_tensor_t *outputs,
                                 int32_t count, const o3_run_options_t *options, o3_run_times_t *times)
    O3_MUST_USE;

#endif
