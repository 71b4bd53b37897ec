/* A block's score is the mean square of its weights, so that cut-off blocks at the edges compete with whole
 * ones; the ones with the smallest scores go. Of equal ones the first go, which makes results repeatable. */
#include "prune_select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/onnx/onnx_dtype.h"
#include "tensorio/half.h"

static double load(const prune_layer_t *layer, int64_t at) {
  const uint8_t *bytes = layer->data;
  float f;
  double d;
  uint16_t half;
  switch (layer->dtype) {
    case O3_ONNX_F32:
      memcpy(&f, bytes + 4 * at, sizeof(f));
      return (double)f;
    case O3_ONNX_F64:
      memcpy(&d, bytes + 8 * at, sizeof(d));
      return d;
    default:
      memcpy(&half, bytes + 2 * at, sizeof(half));
      return (double)(layer->dtype == O3_ONNX_F16 ? o3_half_to_float(half) : o3_bfloat_to_float(half));
  }
}

static void clear(prune_layer_t *layer, int64_t at) {
  size_t size = layer->dtype == O3_ONNX_F32 ? 4 : layer->dtype == O3_ONNX_F64 ? 8 : 2;
  memset(layer->data + (size_t)at * size, 0, size);
}

static int64_t count_elements(const prune_view_t *view) {
  return view->groups * view->rows * view->cols * view->positions;
}

/* A zero of either sign counts. */
static int64_t count_zeros(const prune_layer_t *layer) {
  int64_t zeros = 0;
  for (int64_t i = 0; i < layer->elements; ++i) zeros += load(layer, i) == 0;
  return zeros;
}

/* ---- Units: blocks, or groups of M inputs ---- */

typedef struct unit {
  int64_t base;       /* of its first element */
  int64_t rows, cols; /* cut off at the edges */
} unit_t;

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t unit_rows(const prune_pattern_t *pattern) {
  return pattern->kind == PRUNE_NM ? 1 : pattern->a;
}

static int64_t count_units(const prune_view_t *view, const prune_pattern_t *pattern) {
  return view->groups * view->positions * divide_up(view->rows, unit_rows(pattern)) *
         divide_up(view->cols, pattern->b);
}

static unit_t find_unit(const prune_view_t *view, const prune_pattern_t *pattern, int64_t index) {
  int64_t height = unit_rows(pattern), width = pattern->b;
  int64_t across = divide_up(view->cols, width), down = divide_up(view->rows, height);
  int64_t col = index % across * width, row = index / across % down * height;
  int64_t position = index / across / down % view->positions, group = index / across / down / view->positions;
  unit_t unit = {.base = group * view->group_stride + row * view->row_stride + col * view->col_stride,
                 .rows = row + height > view->rows ? view->rows - row : height,
                 .cols = col + width > view->cols ? view->cols - col : width};
  for (int i = view->num_positions; i-- > 0; position /= view->sizes[i])
    unit.base += position % view->sizes[i] * view->strides[i];
  return unit;
}

static int64_t element(const prune_view_t *view, const unit_t *unit, int64_t row, int64_t col) {
  return unit->base + row * view->row_stride + col * view->col_stride;
}

/* ---- Scores ---- */

/* splitmix64: a well-mixed number for each counter, so that a choice does not depend on the others. */
static float random_score(uint64_t seed, uint64_t counter) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + (counter + 1) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (float)((x ^ x >> 31) >> 40);
}

/* NaN would not compare; it counts as the largest. */
static float score(const prune_layer_t *layer, const unit_t *unit) {
  double sum = 0;
  for (int64_t row = 0; row < unit->rows; ++row)
    for (int64_t col = 0; col < unit->cols; ++col) {
      double value = load(layer, element(&layer->view, unit, row, col));
      sum += value * value;
    }
  float mean = (float)(sum / (double)(unit->rows * unit->cols));
  return isnan(mean) ? INFINITY : mean;
}

/* At random, but what is zero stays the first to go: it counts. */
static float rank_unit(const prune_options_t *options, const prune_layer_t *layer, const unit_t *unit,
                       uint64_t counter) {
  float own = score(layer, unit);
  return options->has_seed && own > 0 ? random_score(options->seed, counter) : own;
}

static void fill_scores(const prune_options_t *options, const prune_layer_t *layer, uint64_t first,
                        float *scores) {
  for (int64_t i = 0; i < layer->units; ++i) {
    unit_t unit = find_unit(&layer->view, &options->pattern, i);
    scores[i] = rank_unit(options, layer, &unit, first + (uint64_t)i);
  }
}

/* ---- Choosing ---- */

/* The |k|-th smallest (from 0) of |count| numbers, which it reorders. */
static float kth_smallest(float *values, int64_t count, int64_t k) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    float pivot = values[low + (high - low) / 2];
    int64_t i = low, j = high;
    while (i <= j) {
      while (values[i] < pivot) ++i;
      while (values[j] > pivot) --j;
      if (i > j) break;
      float other = values[i];
      values[i++] = values[j];
      values[j--] = other;
    }
    if (k <= j)
      high = j;
    else if (k >= i)
      low = i;
    else
      break;
  }
  return values[k];
}

/* Makes the |k| smallest scores negative, which no other is; |copy| is room for |count|. */
static void mark_smallest(float *scores, float *copy, int64_t count, int64_t k) {
  if (k <= 0) return;
  memcpy(copy, scores, (size_t)count * sizeof(*scores));
  float limit = kth_smallest(copy, count, k - 1);
  for (int64_t i = 0; i < count; ++i) k -= scores[i] < limit;
  for (int64_t i = 0; i < count; ++i) {
    if (scores[i] < limit || (scores[i] == limit && k-- > 0)) scores[i] = -1;
  }
}

static void clear_unit(prune_layer_t *layer, const unit_t *unit) {
  for (int64_t row = 0; row < unit->rows; ++row)
    for (int64_t col = 0; col < unit->cols; ++col) clear(layer, element(&layer->view, unit, row, col));
}

static void drop_marked(const prune_options_t *options, prune_layer_t *layer, const float *scores) {
  for (int64_t i = 0; i < layer->units; ++i) {
    if (scores[i] >= 0) continue;
    unit_t unit = find_unit(&layer->view, &options->pattern, i);
    clear_unit(layer, &unit);
    ++layer->dropped;
  }
}

static int64_t share(double ratio, int64_t count) { return (int64_t)(ratio * (double)count + 0.5); }

static void prune_blocks(const prune_options_t *options, prune_model_t *model, float *scores, float *copy) {
  int64_t total = 0;
  for (int i = 0; i < model->num_layers; ++i) {
    prune_layer_t *layer = &model->layers[i];
    if (layer->skipped) continue;
    fill_scores(options, layer, (uint64_t)total, scores + total);
    if (!options->global)
      mark_smallest(scores + total, copy, layer->units, share(options->ratio, layer->units));
    total += layer->units;
  }
  if (options->global) mark_smallest(scores, copy, total, share(options->ratio, total));
  total = 0;
  for (int i = 0; i < model->num_layers; ++i) {
    if (model->layers[i].skipped) continue;
    drop_marked(options, &model->layers[i], scores + total);
    total += model->layers[i].units;
  }
}

/* A group that is cut off keeps N of what it has, as one that is filled up with zeros would. */
static void prune_group(const prune_options_t *options, prune_layer_t *layer, uint64_t counter,
                        float *scores) {
  unit_t unit = find_unit(&layer->view, &options->pattern, (int64_t)(counter / (uint64_t)options->pattern.b));
  float *copy = scores + options->pattern.b;
  for (int64_t col = 0; col < unit.cols; ++col) {
    unit_t one = {.base = element(&layer->view, &unit, 0, col), .rows = 1, .cols = 1};
    scores[col] = rank_unit(options, layer, &one, counter + (uint64_t)col);
  }
  mark_smallest(scores, copy, unit.cols, unit.cols - options->pattern.a);
  for (int64_t col = 0; col < unit.cols; ++col) {
    if (scores[col] >= 0) continue;
    clear(layer, element(&layer->view, &unit, 0, col));
    ++layer->dropped;
  }
}

static void prune_groups(const prune_options_t *options, prune_model_t *model, float *scores) {
  for (int i = 0; i < model->num_layers; ++i) {
    prune_layer_t *layer = &model->layers[i];
    for (int64_t k = 0; !layer->skipped && k < layer->units; ++k)
      prune_group(options, layer, (uint64_t)(k * options->pattern.b), scores);
  }
}

o3_status_t prune_select(const prune_options_t *options, prune_model_t *model) {
  int64_t total = 2 * options->pattern.b;
  for (int i = 0; i < model->num_layers; ++i) {
    prune_layer_t *layer = &model->layers[i];
    if (layer->skipped) continue;
    layer->elements = count_elements(&layer->view);
    layer->zeros_before = count_zeros(layer);
    layer->units = count_units(&layer->view, &options->pattern);
    total += layer->units;
  }
  float *scores = O3_ARENA_ARRAY(model->arena, float, (size_t)total);
  float *copy = O3_ARENA_ARRAY(model->arena, float, (size_t)total);
  O3_TRY_ALLOC(scores && copy);
  if (options->pattern.kind == PRUNE_NM)
    prune_groups(options, model, scores);
  else
    prune_blocks(options, model, scores, copy);
  for (int i = 0; i < model->num_layers; ++i)
    if (!model->layers[i].skipped) model->layers[i].zeros_after = count_zeros(&model->layers[i]);
  return NULL;
}
