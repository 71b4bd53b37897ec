/* What a run gave: numbers that sum an output up, its comparison, the times. */
#ifndef O3_RUN_RESULT_H
#define O3_RUN_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "o3/model.h"
#include "tensorio/compare.h"

#define O3_RUN_MAX_ARGMAX 8 /* rows whose largest element is told */

/* One output, summed up. Indices are row-major; -1: none (no elements, or all NaN). */
typedef struct o3_run_summary {
  int64_t count, nans;
  int64_t min_index, max_index;
  double mean;        /* over the elements that are not NaN; NaN when there are none */
  int32_t num_argmax; /* rows of a vector or matrix [rows, k] with k >= 2; 0 for other shapes or many rows */
  int64_t argmax[O3_RUN_MAX_ARGMAX];
} o3_run_summary_t;

typedef struct o3_run_output {
  const char *name;          /* the model's */
  const o3_tensor_t *tensor; /* borrowed */
  o3_run_summary_t summary;
  bool compared;
  const o3_tensor_t *expected; /* borrowed; NULL unless |compared| */
  o3_comparison_t comparison;
} o3_run_output_t;

/* Milliseconds of a run. */
typedef struct o3_run_times {
  int64_t runs, warmup;
  double median, mean, min, max, p90, p99;
  double per_second; /* runs, from the mean */
} o3_run_times_t;

typedef struct o3_run_result {
  const char *inputs_dir; /* NULL: none */
  int32_t num_outputs;
  o3_run_output_t *outputs;
  int32_t num_compared, num_failed;
  bool timed;
  o3_run_times_t times;
  struct o3_run_profile *profile; /* NULL: none */
} o3_run_result_t;

/* Sums |tensor| up. INVALID_MODEL when it has no valid type and shape, or no data. */
o3_status_t o3_run_summary_init(const o3_tensor_t *tensor, o3_run_summary_t *summary) O3_MUST_USE;

/* Computes all of |times| but |warmup| from |count| >= 1 durations in milliseconds, which it sorts.
 * Percentiles are by nearest rank. */
void o3_run_times_init(double *durations, int64_t count, o3_run_times_t *times);

#endif
