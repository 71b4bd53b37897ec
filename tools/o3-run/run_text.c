#include <inttypes.h>
#include <math.h>

#include "run_report.h"
#include "tensorio/tensor.h"

#define FIRST_VALUES 6 /* of each output */
#define DIGITS       6

void o3_run_print_element(o3_strbuf_t *text, const o3_tensor_t *tensor, int64_t index, int digits) {
  const o3_element_t *element = o3_tensorio_element_get((int32_t)tensor->dtype);
  const uint64_t bits = element->bits(tensor->data, index);
  switch (element->kind) {
    case O3_ELEMENT_FLOAT:
      o3_strbuf_printf(text, "%.*g", digits, element->load(tensor->data, index));
      break;
    case O3_ELEMENT_SIGNED:
      o3_strbuf_printf(text, "%" PRId64, (int64_t)bits);
      break;
    case O3_ELEMENT_UNSIGNED:
    case O3_ELEMENT_BOOL:
      o3_strbuf_printf(text, "%" PRIu64, bits);
      break;
  }
}

void o3_run_print_index(o3_strbuf_t *text, const o3_tensor_t *tensor, int64_t index) {
  int64_t coordinates[O3_MAX_RANK];
  for (int32_t d = tensor->rank - 1; d >= 0; --d) {
    coordinates[d] = index % tensor->shape[d];
    index /= tensor->shape[d];
  }
  o3_tensorio_shape_print(text, tensor->rank, coordinates);
}

static void print_info(o3_strbuf_t *text, const o3_tensor_info_t *info) {
  o3_strbuf_printf(text, "  %s: %s [", info->name, o3_tensorio_element_name((int32_t)info->dtype));
  for (int32_t d = 0; d < info->rank; ++d) {
    if (d) o3_strbuf_puts(text, ",");
    if (info->symbols[d]) {
      o3_strbuf_puts(text, info->symbols[d]);
    } else if (info->shape[d] < 0) {
      o3_strbuf_puts(text, "?");
    } else {
      o3_strbuf_printf(text, "%" PRId64, info->shape[d]);
    }
  }
  o3_strbuf_puts(text, "]\n");
}

void o3_run_text_model(o3_strbuf_t *text, const o3_run_model_t *model) {
  const o3_model_info_t *info = &model->info;
  o3_strbuf_printf(text, "model: %s\ntarget: %s\nopt level: O%d\nbuild id: %s\nproducer: %s\n", info->name,
                   info->target, info->opt_level, info->build_id, info->producer);
  o3_strbuf_printf(text, "weights: %" PRIu64 " bytes\ninputs:%s\n", info->constant_bytes,
                   info->num_inputs ? "" : " none");
  for (int32_t i = 0; i < info->num_inputs; ++i) print_info(text, &model->inputs[i]);
  o3_strbuf_printf(text, "outputs:%s\n", info->num_outputs ? "" : " none");
  for (int32_t i = 0; i < info->num_outputs; ++i) print_info(text, &model->outputs[i]);
}

static void print_summary(o3_strbuf_t *text, const o3_run_output_t *output) {
  const o3_tensor_t *tensor = output->tensor;
  const o3_run_summary_t *summary = &output->summary;
  o3_strbuf_printf(text, "output '%s': %s ", output->name, o3_tensorio_element_name((int32_t)tensor->dtype));
  o3_tensorio_shape_print(text, tensor->rank, tensor->shape);
  if (summary->min_index >= 0) {
    o3_strbuf_puts(text, " min ");
    o3_run_print_element(text, tensor, summary->min_index, DIGITS);
    o3_strbuf_puts(text, " max ");
    o3_run_print_element(text, tensor, summary->max_index, DIGITS);
    o3_strbuf_printf(text, " mean %.*g", DIGITS, summary->mean);
  }
  if (summary->nans) o3_strbuf_printf(text, " NaN %" PRId64, summary->nans);
  for (int32_t i = 0; i < summary->num_argmax; ++i) {
    o3_strbuf_printf(text, "%s%" PRId64, i ? "," : " argmax ", summary->argmax[i]);
  }
  o3_strbuf_puts(text, "\n ");
  for (int64_t i = 0; i < summary->count && i < FIRST_VALUES; ++i) {
    o3_strbuf_puts(text, " ");
    o3_run_print_element(text, tensor, i, DIGITS);
  }
  o3_strbuf_puts(text, summary->count > FIRST_VALUES ? " ...\n" : summary->count ? "\n" : " no elements\n");
}

static void print_type(o3_strbuf_t *text, const o3_tensor_t *tensor) {
  o3_strbuf_printf(text, "%s ", o3_tensorio_element_name((int32_t)tensor->dtype));
  o3_tensorio_shape_print(text, tensor->rank, tensor->shape);
}

static void print_worst(o3_strbuf_t *text, const o3_run_output_t *output) {
  o3_strbuf_puts(text, ", worst at ");
  o3_run_print_index(text, output->tensor, output->comparison.worst);
  o3_strbuf_puts(text, ": ");
  o3_run_print_element(text, output->tensor, output->comparison.worst, 9);
  o3_strbuf_puts(text, ", ");
  o3_run_print_element(text, output->expected, output->comparison.worst, 9);
  o3_strbuf_puts(text, " expected");
}

static void print_comparison(o3_strbuf_t *text, const o3_run_output_t *output,
                             const o3_tolerance_t *tolerance) {
  const o3_comparison_t *c = &output->comparison;
  o3_strbuf_printf(text, "  %s: ", c->ok ? "as expected" : "DIFFERS");
  if (!c->same_type || !c->same_shape) {
    print_type(text, output->tensor);
    o3_strbuf_puts(text, " came, ");
    print_type(text, output->expected);
    o3_strbuf_puts(text, " expected\n");
    return;
  }
  o3_strbuf_printf(text, "%" PRId64 " of %" PRId64 " elements outside", c->outside, c->count);
  o3_strbuf_printf(text, ", max error %.3g absolute, %.3g relative, %" PRIu64 " ULP", c->max_abs, c->max_rel,
                   c->max_ulp);
  if (c->worst >= 0) print_worst(text, output);
  o3_strbuf_printf(text, " (rtol %g, atol %g)\n", tolerance->rtol, tolerance->atol);
}

static void print_times(o3_strbuf_t *text, const o3_run_times_t *times) {
  o3_strbuf_printf(text, "time of %" PRId64 " runs after %" PRId64 " to warm up, ms: median %.4g",
                   times->runs, times->warmup, times->median);
  o3_strbuf_printf(text, " mean %.4g min %.4g p90 %.4g p99 %.4g max %.4g\n", times->mean, times->min,
                   times->p90, times->p99, times->max);
  o3_strbuf_printf(text, "throughput: %.4g runs per second\n", times->per_second);
}

void o3_run_text_result(o3_strbuf_t *text, const o3_run_result_t *result, const o3_run_options_t *options) {
  if (result->inputs_dir) o3_strbuf_printf(text, "set '%s'\n", result->inputs_dir);
  for (int32_t i = 0; i < result->num_outputs; ++i) {
    print_summary(text, &result->outputs[i]);
    if (result->outputs[i].compared) print_comparison(text, &result->outputs[i], &options->tolerance);
  }
  if (result->timed) print_times(text, &result->times);
  if (result->profile) o3_run_text_profile(text, result->profile);
}
