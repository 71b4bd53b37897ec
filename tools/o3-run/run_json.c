#include <inttypes.h>
#include <math.h>

#include "run_report.h"
#include "tensorio/tensor.h"

#define FIRST_VALUES 16 /* of each output */
#define DIGITS       17 /* enough for every double to come back as it was */

static void print_string(o3_strbuf_t *text, const char *string) {
  if (!string) {
    o3_strbuf_puts(text, "null");
    return;
  }
  o3_strbuf_puts(text, "\"");
  for (const char *c = string; *c; ++c) {
    if (*c == '"' || *c == '\\') {
      o3_strbuf_printf(text, "\\%c", *c);
    } else if ((unsigned char)*c < 0x20) {
      o3_strbuf_printf(text, "\\u%04x", (unsigned)*c);
    } else {
      o3_strbuf_append(text, c, 1);
    }
  }
  o3_strbuf_puts(text, "\"");
}

static void print_number(o3_strbuf_t *text, double value) {
  if (isfinite(value)) {
    o3_strbuf_printf(text, "%.*g", DIGITS, value);
  } else {
    print_string(text, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  }
}

static void print_element(o3_strbuf_t *text, const o3_tensor_t *tensor, int64_t index) {
  const o3_element_t *element = o3_tensorio_element_get((int32_t)tensor->dtype);
  if (index < 0) {
    print_string(text, NULL);
  } else if (element->kind == O3_ELEMENT_FLOAT) {
    print_number(text, element->load(tensor->data, index));
  } else {
    o3_run_print_element(text, tensor, index, DIGITS);
  }
}

static void print_key(o3_strbuf_t *text, const char *key) { o3_strbuf_printf(text, ", \"%s\": ", key); }

static void print_text_field(o3_strbuf_t *text, const char *key, const char *value) {
  print_key(text, key);
  print_string(text, value);
}

static void print_number_field(o3_strbuf_t *text, const char *key, double value) {
  print_key(text, key);
  print_number(text, value);
}

static void print_integer_field(o3_strbuf_t *text, const char *key, int64_t value) {
  print_key(text, key);
  o3_strbuf_printf(text, "%" PRId64, value);
}

static void print_info(o3_strbuf_t *text, const o3_tensor_info_t *info) {
  o3_strbuf_puts(text, "{\"name\": ");
  print_string(text, info->name);
  print_text_field(text, "dtype", o3_tensorio_element_name((int32_t)info->dtype));
  print_key(text, "shape");
  o3_strbuf_puts(text, "[");
  for (int32_t d = 0; d < info->rank; ++d) {
    if (d) o3_strbuf_puts(text, ", ");
    if (info->symbols[d] || info->shape[d] < 0) {
      print_string(text, info->symbols[d]);
    } else {
      o3_strbuf_printf(text, "%" PRId64, info->shape[d]);
    }
  }
  o3_strbuf_puts(text, "]}");
}

static void print_infos(o3_strbuf_t *text, const char *key, const o3_tensor_info_t *infos, int32_t count) {
  print_key(text, key);
  o3_strbuf_puts(text, "[");
  for (int32_t i = 0; i < count; ++i) {
    if (i) o3_strbuf_puts(text, ", ");
    print_info(text, &infos[i]);
  }
  o3_strbuf_puts(text, "]");
}

void o3_run_json_model(o3_strbuf_t *text, const o3_run_model_t *model) {
  const o3_model_info_t *info = &model->info;
  o3_strbuf_puts(text, "{\"name\": ");
  print_string(text, info->name);
  print_text_field(text, "target", info->target);
  print_integer_field(text, "opt_level", info->opt_level);
  print_text_field(text, "build_id", info->build_id);
  print_text_field(text, "producer", info->producer);
  print_key(text, "constant_bytes");
  o3_strbuf_printf(text, "%" PRIu64, info->constant_bytes);
  print_infos(text, "inputs", model->inputs, info->num_inputs);
  print_infos(text, "outputs", model->outputs, info->num_outputs);
  o3_strbuf_puts(text, "}");
}

static void print_integers(o3_strbuf_t *text, const char *key, const int64_t *values, int32_t count) {
  print_key(text, key);
  o3_tensorio_shape_print(text, count, values);
}

static void print_comparison(o3_strbuf_t *text, const o3_run_output_t *output) {
  const o3_comparison_t *c = &output->comparison;
  print_key(text, "check");
  o3_strbuf_printf(text, "{\"ok\": %s", c->ok ? "true" : "false");
  print_text_field(text, "expected_dtype", o3_tensorio_element_name((int32_t)output->expected->dtype));
  print_integers(text, "expected_shape", output->expected->shape, output->expected->rank);
  if (c->same_type && c->same_shape) {
    print_integer_field(text, "outside", c->outside);
    print_number_field(text, "max_abs", c->max_abs);
    print_number_field(text, "max_rel", c->max_rel);
    print_key(text, "max_ulp");
    o3_strbuf_printf(text, "%" PRIu64, c->max_ulp);
    print_key(text, "worst_index");
    if (c->worst < 0) {
      print_string(text, NULL);
    } else {
      o3_run_print_index(text, output->tensor, c->worst);
    }
    print_key(text, "worst_got");
    print_element(text, output->tensor, c->worst);
    print_key(text, "worst_expected");
    print_element(text, output->expected, c->worst);
  }
  o3_strbuf_puts(text, "}");
}

static void print_output(o3_strbuf_t *text, const o3_run_output_t *output) {
  const o3_tensor_t *tensor = output->tensor;
  const o3_run_summary_t *summary = &output->summary;
  o3_strbuf_puts(text, "{\"name\": ");
  print_string(text, output->name);
  print_text_field(text, "dtype", o3_tensorio_element_name((int32_t)tensor->dtype));
  print_integers(text, "shape", tensor->shape, tensor->rank);
  print_key(text, "min");
  print_element(text, tensor, summary->min_index);
  print_key(text, "max");
  print_element(text, tensor, summary->max_index);
  print_number_field(text, "mean", summary->mean);
  print_integer_field(text, "nan", summary->nans);
  print_integers(text, "argmax", summary->argmax, summary->num_argmax);
  print_key(text, "first");
  o3_strbuf_puts(text, "[");
  for (int64_t i = 0; i < summary->count && i < FIRST_VALUES; ++i) {
    if (i) o3_strbuf_puts(text, ", ");
    print_element(text, tensor, i);
  }
  o3_strbuf_puts(text, "]");
  if (output->compared) print_comparison(text, output);
  o3_strbuf_puts(text, "}");
}

static void print_times(o3_strbuf_t *text, const o3_run_times_t *times) {
  print_key(text, "bench");
  o3_strbuf_printf(text, "{\"runs\": %" PRId64, times->runs);
  print_integer_field(text, "warmup", times->warmup);
  print_number_field(text, "median_ms", times->median);
  print_number_field(text, "mean_ms", times->mean);
  print_number_field(text, "min_ms", times->min);
  print_number_field(text, "max_ms", times->max);
  print_number_field(text, "p90_ms", times->p90);
  print_number_field(text, "p99_ms", times->p99);
  print_number_field(text, "runs_per_second", times->per_second);
  o3_strbuf_puts(text, "}");
}

static void print_kernel(o3_strbuf_t *text, const o3_run_kernel_t *kernel) {
  o3_strbuf_puts(text, "{\"name\": ");
  print_string(text, kernel->info.name);
  print_text_field(text, "kind", kernel->info.kind);
  print_key(text, "nodes");
  o3_strbuf_puts(text, "[");
  for (int32_t i = 0; i < kernel->info.num_nodes; ++i) {
    if (i) o3_strbuf_puts(text, ", ");
    print_string(text, kernel->info.nodes[i]);
  }
  o3_strbuf_puts(text, "]");
  print_number_field(text, "ms", kernel->ms);
  print_number_field(text, "share", kernel->share);
  print_integer_field(text, "calls", kernel->sample.calls);
  print_number_field(text, "operations", kernel->sample.operations);
  print_number_field(text, "bytes", kernel->sample.bytes);
  print_number_field(text, "gflops", kernel->flops * 1e-9);
  print_number_field(text, "gbytes", kernel->bytes * 1e-9);
  o3_strbuf_puts(text, "}");
}

/* Caches that were measured, by their levels. */
static void print_caches(o3_strbuf_t *text, const o3_peaks_t *peaks) {
  const char *separator = "";
  print_key(text, "caches");
  o3_strbuf_puts(text, "[");
  for (int i = 0; i < O3_PEAKS_CACHES; ++i) {
    const o3_peaks_cache_t *cache = &peaks->caches[i];
    if (!cache->bytes) continue;
    o3_strbuf_printf(text, "%s{\"level\": %d", separator, i + 2);
    print_integer_field(text, "bytes", cache->bytes);
    print_number_field(text, "copy_gbytes", cache->copy_bytes * 1e-9);
    o3_strbuf_puts(text, "}");
    separator = ", ";
  }
  o3_strbuf_puts(text, "]");
}

static void print_profile(o3_strbuf_t *text, const o3_run_profile_t *profile) {
  print_key(text, "profile");
  o3_strbuf_printf(text, "{\"runs\": %" PRId64, profile->runs);
  print_integer_field(text, "threads", profile->threads);
  print_number_field(text, "median_ms", profile->run_ms);
  print_text_field(text, "peaks", profile->gpu ? "vendor" : "measured");
  print_number_field(text, "peak_gflops", profile->peaks.fma_flops * 1e-9);
  print_number_field(text, "copy_gbytes", profile->peaks.copy_bytes * 1e-9);
  print_caches(text, &profile->peaks);
  print_key(text, "kernels");
  o3_strbuf_puts(text, "[");
  for (int32_t i = 0; i <= profile->num_kernels; ++i) {
    if (i) o3_strbuf_puts(text, ", ");
    print_kernel(text, &profile->kernels[i]);
  }
  o3_strbuf_puts(text, "]}");
}

void o3_run_json_result(o3_strbuf_t *text, const o3_run_result_t *result, const o3_run_options_t *options) {
  o3_strbuf_printf(text, "{\"ok\": %s", result->num_failed ? "false" : "true");
  print_text_field(text, "inputs_dir", result->inputs_dir);
  print_integer_field(text, "runs", options->repeat);
  print_key(text, "outputs");
  o3_strbuf_puts(text, "[");
  for (int32_t i = 0; i < result->num_outputs; ++i) {
    if (i) o3_strbuf_puts(text, ", ");
    print_output(text, &result->outputs[i]);
  }
  o3_strbuf_puts(text, "]");
  if (result->timed) print_times(text, &result->times);
  if (result->profile) print_profile(text, result->profile);
  o3_strbuf_puts(text, "}");
}
