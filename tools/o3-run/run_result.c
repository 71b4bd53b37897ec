#include "run_result.h"

#include <math.h>
#include <stdlib.h>

#include "tensorio/tensor.h"

static int64_t find_row_max(const o3_element_t *element, const void *data, int64_t begin, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (element->load(data, begin + i) > element->load(data, begin + best)) best = i;
  }
  return best;
}

static void find_argmax(const o3_tensor_t *tensor, const o3_element_t *element, o3_run_summary_t *summary) {
  if (tensor->rank < 1 || tensor->rank > 2 || element->kind == O3_ELEMENT_BOOL) return;
  const int64_t width = tensor->shape[tensor->rank - 1], rows = tensor->rank == 2 ? tensor->shape[0] : 1;
  if (width < 2 || rows > O3_RUN_MAX_ARGMAX) return;
  summary->num_argmax = (int32_t)rows;
  for (int64_t row = 0; row < rows; ++row) {
    summary->argmax[row] = find_row_max(element, tensor->data, row * width, width);
  }
}

o3_status_t o3_run_summary_init(const o3_tensor_t *tensor, o3_run_summary_t *summary) {
  *summary = (o3_run_summary_t){.min_index = -1, .max_index = -1};
  O3_TRY(o3_tensorio_measure(tensor, &summary->count, NULL));
  if (summary->count && !tensor->data) return o3_status_create(O3_STATUS_INVALID_MODEL, "it has no data");
  const o3_element_t *element = o3_tensorio_element_get((int32_t)tensor->dtype);
  double sum = 0, min = 0, max = 0;
  for (int64_t i = 0; i < summary->count; ++i) {
    const double value = element->load(tensor->data, i);
    if (isnan(value)) {
      ++summary->nans;
      continue;
    }
    sum += value;
    if (summary->min_index < 0 || value < min) min = value, summary->min_index = i;
    if (summary->max_index < 0 || value > max) max = value, summary->max_index = i;
  }
  const int64_t numbers = summary->count - summary->nans;
  summary->mean = numbers ? sum / (double)numbers : NAN;
  if (!summary->nans) find_argmax(tensor, element, summary);
  return NULL;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Nearest rank: the least value that |percent| of all do not exceed. */
static double percentile(const double *sorted, int64_t count, int64_t percent) {
  const int64_t rank = (count / 100) * percent + ((count % 100) * percent + 99) / 100;
  return sorted[rank > 0 ? rank - 1 : 0];
}

void o3_run_times_init(double *durations, int64_t count, o3_run_times_t *times) {
  double sum = 0;
  qsort(durations, (size_t)count, sizeof *durations, compare_doubles);
  for (int64_t i = 0; i < count; ++i) sum += durations[i];
  times->runs = count;
  times->min = durations[0];
  times->max = durations[count - 1];
  times->mean = sum / (double)count;
  times->median = (durations[(count - 1) / 2] + durations[count / 2]) / 2;
  times->p90 = percentile(durations, count, 90);
  times->p99 = percentile(durations, count, 99);
  times->per_second = times->mean > 0 ? 1000 / times->mean : INFINITY;
}
