#include "driver/sparse_report.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "base/file.h"

/* Of dense's time: what blocks have to gain to be worth telling. */
static const double HINT_MARGIN = 0.9;

/* ---- What both tell ---- */

/* Microseconds, dense and as chosen. */
typedef struct times {
  double dense, chosen;
} times_t;

typedef struct total {
  int weights, sparse, num_measured;
  times_t predicted, measured; /* of all; of those that were measured */
  int64_t elements, zeros, dense_bytes, bytes;
} total_t;

static const o3_sparse_choice_t *row_at(const o3_sparse_report_t *report, size_t index) {
  return report->rows.items[index];
}

static double share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0; }

static double gain(times_t times) { return times.chosen > 0 ? times.dense / times.chosen : 1; }

static times_t predicted(const o3_sparse_choice_t *row) {
  return (times_t){row->dense_predicted, row->chosen ? row->chosen->predicted : row->dense_predicted};
}

/* Zeros when the row was not measured. */
static times_t measured(const o3_sparse_choice_t *row) {
  return (times_t){row->dense_measured, row->chosen ? row->chosen->measured : row->dense_measured};
}

static int64_t chosen_bytes(const o3_sparse_choice_t *row) {
  return row->chosen ? row->chosen->bytes : row->dense_bytes;
}

static void add(times_t *sum, times_t times) {
  sum->dense += times.dense;
  sum->chosen += times.chosen;
}

static total_t add_up(const o3_sparse_report_t *report) {
  total_t total = {0};
  for (size_t i = 0; i < report->rows.count; ++i) {
    const o3_sparse_choice_t *row = row_at(report, i);
    ++total.weights;
    total.sparse += row->chosen != NULL;
    total.num_measured += row->dense_measured > 0;
    total.elements += row->sparsity.elements;
    total.zeros += row->sparsity.zeros;
    add(&total.predicted, predicted(row));
    add(&total.measured, measured(row));
    total.dense_bytes += row->dense_bytes;
    total.bytes += chosen_bytes(row);
  }
  return total;
}

/* The block shape that saves most: least stored elements, of shapes of at least four. -1 without zeros. */
static int best_shape(const o3_sparsity_t *sparsity) {
  int best = -1;
  for (int i = 0; i < O3_SPARSITY_NUM_SHAPES; ++i) {
    if (O3_SPARSITY_SHAPES[i].outputs * O3_SPARSITY_SHAPES[i].inputs < 4) continue;
    /* Larger blocks win ties: the tables are sorted by size. */
    if (best < 0 || o3_sparsity_occupancy(sparsity, i) <= o3_sparsity_occupancy(sparsity, best) + 0.02)
      best = i;
  }
  return sparsity->zeros ? best : -1;
}

/* ---- Text ---- */

static void print_blocks(FILE *stream, const o3_sparsity_t *sparsity) {
  char text[32] = "-";
  int best = best_shape(sparsity);
  if (best >= 0)
    snprintf(text, sizeof(text), "%lldx%lld %3.0f %%", (long long)O3_SPARSITY_SHAPES[best].outputs,
             (long long)O3_SPARSITY_SHAPES[best].inputs, 100 * o3_sparsity_occupancy(sparsity, best));
  fprintf(stream, " %12s", text);
}

static void print_times(FILE *stream, times_t times) {
  if (times.dense > 0)
    fprintf(stream, " %9.1f %9.1f %5.2fx", times.dense, times.chosen, gain(times));
  else
    fprintf(stream, " %9s %9s %6s", "-", "-", "-");
}

static void print_row(FILE *stream, const o3_sparse_choice_t *row, bool with_measured) {
  fprintf(stream, "  %-28s %-16s %5.1f %%", row->node, row->shape,
          100 * share(row->sparsity.zeros, row->sparsity.elements));
  print_blocks(stream, &row->sparsity);
  fprintf(stream, "  %-10s", row->format);
  print_times(stream, predicted(row));
  if (with_measured) print_times(stream, measured(row));
  fprintf(stream, " %8.1f %8.1f  %s\n", (double)row->dense_bytes / 1e3, (double)chosen_bytes(row) / 1e3,
          row->why);
}

static void print_heading(FILE *stream, bool with_measured) {
  fprintf(stream, "weights\n  %-28s %-16s %7s %12s  %-10s %9s %9s %6s", "node", "shape", "zeros", "stored",
          "format", "dense us", "us", "gain");
  if (with_measured) fprintf(stream, " %9s %9s %6s", "measured:", "us", "gain");
  fprintf(stream, " %8s %8s  %s\n", "dense kB", "kB", "why");
}

/* What the weight's zeros would give if they were whole blocks of 16 x 16. */
static double time_in_blocks(const o3_sparse_choice_t *row) {
  const o3_sparse_block_t block = {.lanes = 16, .depth = 16};
  double kept = 1 - share(row->sparsity.zeros, row->sparsity.elements);
  int64_t entries = (int64_t)ceil(kept * (double)row->sparsity.blocks[O3_SPARSITY_16x16]);
  return fmin(row->dense_predicted, o3_sparse_cost(&row->layer, &block, entries));
}

/* For those whose pruned model is not faster: zeros that are of no use, and where they would be. */
static void print_hint(FILE *stream, const o3_sparse_report_t *report) {
  int count = 0;
  times_t times = {0};
  for (size_t i = 0; i < report->rows.count; ++i) {
    const o3_sparse_choice_t *row = row_at(report, i);
    bool unused =
        !row->chosen && !row->forced && row->sparsity.zeros && row->num_options && !row->options[0].refused;
    if (!unused) continue;
    ++count;
    add(&times, (times_t){row->dense_predicted, time_in_blocks(row)});
  }
  if (!count || times.chosen > HINT_MARGIN * times.dense) return;
  fprintf(stream,
          "  %d weights with zeros stay dense: %.0f us; with as many zeros in whole blocks of 16 x 16 "
          "(o3-prune --block 16x16): about %.0f us\n",
          count, times.dense, times.chosen);
}

static void print_total(FILE *stream, const total_t *total) {
  fprintf(stream,
          "  %d of %d weights are sparse; %.1f %% of all numbers are zero; products: %.0f us dense, %.0f us, "
          "%.2fx; weights: %.1f MB dense, %.1f MB\n",
          total->sparse, total->weights, 100 * share(total->zeros, total->elements), total->predicted.dense,
          total->predicted.chosen, gain(total->predicted), (double)total->dense_bytes / 1e6,
          (double)total->bytes / 1e6);
  if (total->num_measured)
    fprintf(stream, "  %d products were measured: %.0f us dense, %.0f us, %.2fx\n", total->num_measured,
            total->measured.dense, total->measured.chosen, gain(total->measured));
}

void o3_sparse_report_print(FILE *stream, const o3_sparse_report_t *report) {
  bool symbolic = false;
  total_t total = add_up(report);
  print_heading(stream, total.num_measured > 0);
  for (size_t i = 0; i < report->rows.count; ++i) {
    print_row(stream, row_at(report, i), total.num_measured > 0);
    symbolic |= !row_at(report, i)->layer.columns_known;
  }
  print_hint(stream, report);
  print_total(stream, &total);
  fputs("  times are the cost model's, of one thread", stream);
  if (total.num_measured) fputs(", but for those that were measured", stream);
  fputs(symbolic ? "; symbolic sizes were taken to be usual ones: --dim and --shape fix them\n" : "\n",
        stream);
}

/* ---- JSON ---- */

static cJSON *option_json(const o3_sparse_option_t *option) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "format", option->format);
  if (option->refused) {
    cJSON_AddStringToObject(object, "refused", option->refused);
    return object;
  }
  cJSON_AddNumberToObject(object, "stored", option->occupancy);
  if (option->parts) cJSON_AddStringToObject(object, "parts", option->parts);
  cJSON_AddNumberToObject(object, "predicted_us", option->predicted);
  if (option->measured > 0) cJSON_AddNumberToObject(object, "measured_us", option->measured);
  cJSON_AddNumberToObject(object, "bytes", (double)option->bytes);
  return object;
}

static void add_axis(cJSON *object, const char *name, const o3_sparsity_axis_t *axis) {
  cJSON *json = cJSON_AddObjectToObject(object, name), *groups = cJSON_AddObjectToObject(json, "most_of");
  cJSON_AddNumberToObject(json, "count", (double)axis->count);
  cJSON_AddNumberToObject(json, "dead", (double)axis->dead);
  cJSON_AddNumberToObject(json, "least", (double)axis->least);
  cJSON_AddNumberToObject(json, "most", (double)axis->most);
  cJSON_AddNumberToObject(json, "mean", axis->mean);
  cJSON_AddNumberToObject(json, "deviation", axis->deviation);
  for (int i = 0; i < O3_SPARSITY_NUM_GROUPS; ++i) {
    char text[16];
    snprintf(text, sizeof(text), "%lld", (long long)O3_SPARSITY_GROUPS[i]);
    cJSON_AddNumberToObject(groups, text, (double)axis->most_of[i]);
  }
}

static void add_occupancy(cJSON *object, const o3_sparsity_t *sparsity) {
  cJSON *blocks = cJSON_AddObjectToObject(object, "occupancy");
  for (int i = 0; i < O3_SPARSITY_NUM_SHAPES; ++i) {
    char text[32];
    snprintf(text, sizeof(text), "%lldx%lld", (long long)O3_SPARSITY_SHAPES[i].outputs,
             (long long)O3_SPARSITY_SHAPES[i].inputs);
    cJSON_AddNumberToObject(blocks, text, o3_sparsity_occupancy(sparsity, i));
  }
}

static cJSON *dense_json(const o3_sparse_choice_t *row) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddNumberToObject(object, "predicted_us", row->dense_predicted);
  if (row->dense_measured > 0) cJSON_AddNumberToObject(object, "measured_us", row->dense_measured);
  cJSON_AddNumberToObject(object, "bytes", (double)row->dense_bytes);
  return object;
}

static cJSON *row_json(const o3_sparse_choice_t *row) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "node", row->node);
  cJSON_AddStringToObject(object, "op", row->op);
  cJSON_AddStringToObject(object, "shape", row->shape);
  cJSON_AddNumberToObject(object, "elements", (double)row->sparsity.elements);
  cJSON_AddNumberToObject(object, "zeros", (double)row->sparsity.zeros);
  cJSON_AddNumberToObject(object, "columns", (double)row->layer.columns);
  cJSON_AddBoolToObject(object, "columns_known", row->layer.columns_known);
  cJSON_AddStringToObject(object, "format", row->format);
  cJSON_AddBoolToObject(object, "forced", row->forced);
  cJSON_AddStringToObject(object, "why", row->why);
  add_occupancy(object, &row->sparsity);
  add_axis(object, "outputs", &row->sparsity.outputs);
  add_axis(object, "inputs", &row->sparsity.inputs);
  cJSON_AddItemToObject(object, "dense", dense_json(row));
  cJSON *options = cJSON_AddArrayToObject(object, "options");
  for (int i = 0; i < row->num_options; ++i) cJSON_AddItemToArray(options, option_json(&row->options[i]));
  return object;
}

static void add_total(cJSON *object, const total_t *total) {
  cJSON *json = cJSON_AddObjectToObject(object, "total");
  cJSON_AddNumberToObject(json, "weights", total->weights);
  cJSON_AddNumberToObject(json, "sparse", total->sparse);
  cJSON_AddNumberToObject(json, "elements", (double)total->elements);
  cJSON_AddNumberToObject(json, "zeros", (double)total->zeros);
  cJSON_AddNumberToObject(json, "dense_us", total->predicted.dense);
  cJSON_AddNumberToObject(json, "us", total->predicted.chosen);
  if (total->num_measured) {
    cJSON_AddNumberToObject(json, "measured", total->num_measured);
    cJSON_AddNumberToObject(json, "measured_dense_us", total->measured.dense);
    cJSON_AddNumberToObject(json, "measured_us", total->measured.chosen);
  }
  cJSON_AddNumberToObject(json, "dense_bytes", (double)total->dense_bytes);
  cJSON_AddNumberToObject(json, "bytes", (double)total->bytes);
}

static o3_status_t print(const char *text) {
  puts(text);
  return o3_file_stdout_end();
}

o3_status_t o3_sparse_report_write(const char *path, const char *model, const o3_sparse_report_t *report) {
  cJSON *object = cJSON_CreateObject();
  total_t total = add_up(report);
  cJSON_AddStringToObject(object, "model", model);
  cJSON *rows = cJSON_AddArrayToObject(object, "weights");
  for (size_t i = 0; i < report->rows.count; ++i) cJSON_AddItemToArray(rows, row_json(row_at(report, i)));
  add_total(object, &total);
  char *text = cJSON_Print(object);
  cJSON_Delete(object);
  O3_TRY_ALLOC(text);
  o3_status_t status = strcmp(path, "-") ? o3_file_write(path, text, strlen(text)) : print(text);
  cJSON_free(text);
  return status;
}
