/* Time is arithmetic and the weights' way from memory, which sparse kernels wait for as well, dense ones
 * mostly instead; and then the way of input and result, through caches. A tile of few columns waits for its
 * own sums: a multiply-add takes four cycles, so four vectors must be under way; dense tiles have three
 * blocks of them.
 */
#include "analysis/sparse_cost.h"

#include <math.h>
#include <stddef.h>

#include "ir/block_lanes.h"

enum { LANES = O3_BLOCK_LANES, TILE_COLUMNS = 28, DENSE_BLOCKS = 3, LATENCY = 4 };
/* Vectors of pixels that compressed rows of convolutions work on at a time; rows of a matrix:
 * O3_SPARSE_PANEL. */
enum { PIECE = 14 * LANES, SECOND_CACHE = 1 << 20 };

/* Of one core: 10^9 operations and bytes a second. Blocked data is read and written by products, beside their
 * arithmetic; plain data by kernels of their own, in which borders are added, steps taken apart, rows of
 * matrices transposed. */
static const double PEAK = 115, MEMORY = 36, BLOCKED = 60, PLAIN = 18, BORDER = 9, STEPS = 3.5, PANELS = 10,
                    FAR_PANELS = 1.8;
/* The share of the shorter of arithmetic and weights' way that is not hidden behind the longer. */
static const double DENSE_WAIT = 0.25, SPARSE_WAIT = 0.75;

static const struct {
  int64_t lanes, depth;
  const char *format;
  double rate;
} RATES[] = {
#define O3_SPARSE_RATE(lanes, depth, format, rate) {lanes, depth, format, rate},
#define O3_SPARSE_ROWS_RATE(bytes, rate)
#define O3_SPARSE_GROUP_RATE(rate)
#include "analysis/sparse_rates.def"
#undef O3_SPARSE_RATE
#undef O3_SPARSE_ROWS_RATE
#undef O3_SPARSE_GROUP_RATE
};
enum { NUM_RATES = sizeof(RATES) / sizeof(RATES[0]) };

static const struct {
  int64_t bytes;
  double rate;
} ROWS_RATES[] = {
#define O3_SPARSE_RATE(lanes, depth, format, rate)
#define O3_SPARSE_ROWS_RATE(bytes, rate) {bytes, rate},
#define O3_SPARSE_GROUP_RATE(rate)
#include "analysis/sparse_rates.def"
#undef O3_SPARSE_RATE
#undef O3_SPARSE_ROWS_RATE
#undef O3_SPARSE_GROUP_RATE
};

static const double GROUP_RATE =
#define O3_SPARSE_RATE(lanes, depth, format, rate)
#define O3_SPARSE_ROWS_RATE(bytes, rate)
#define O3_SPARSE_GROUP_RATE(rate) rate
#include "analysis/sparse_rates.def"
#undef O3_SPARSE_RATE
#undef O3_SPARSE_ROWS_RATE
#undef O3_SPARSE_GROUP_RATE
    ;

bool o3_sparse_candidate(int index, const char **format) {
  if (index < 0 || index >= NUM_RATES) return false;
  *format = RATES[index].format;
  return true;
}

/* Of a block that is not in the table: of the largest that fits into it. */
static double rate_of(const o3_sparse_block_t *block) {
  double rate = 0;
  int64_t size = 0;
  if (block->span) return GROUP_RATE;
  for (int i = 0; i < NUM_RATES; ++i) {
    int64_t own = RATES[i].lanes * RATES[i].depth;
    if (RATES[i].lanes > block->lanes || RATES[i].depth > block->depth || own <= size) continue;
    rate = RATES[i].rate;
    size = own;
  }
  return rate;
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static double columns_of_tile(int64_t columns) {
  return columns < 1 ? 1 : (double)columns / (double)divide_up(columns, TILE_COLUMNS);
}

static double microseconds(double products, double rate, int64_t weight_bytes, double wait) {
  double compute = 2 * products / (PEAK * 1e3 * rate), load = (double)weight_bytes / (MEMORY * 1e3);
  return fmax(compute, load) + wait * fmin(compute, load);
}

static double moving(int64_t bytes, double gigabytes) { return (double)bytes / (gigabytes * 1e3); }

/* Channels of convolutions are in blocks, whole ones but where there are few. */
static int64_t dense_channels(const o3_sparse_weight_t *w) {
  bool whole = w->is_matmul || w->group > 1 || w->channels < LANES;
  return whole ? w->channels : divide_up(w->channels, LANES) * LANES;
}

double o3_sparse_cost_dense(const o3_sparse_layer_t *layer) {
  const o3_sparse_weight_t *w = &layer->weight;
  double products = (double)(divide_up(w->outputs, LANES) * LANES) * (double)dense_channels(w) *
                    (double)(w->window[0] * w->window[1]) * (double)layer->columns;
  double busy = fmin(1, columns_of_tile(layer->columns) * DENSE_BLOCKS / LATENCY);
  return microseconds(products, busy * layer->dense_gain, o3_sparse_bytes_dense(layer), DENSE_WAIT) +
         moving(layer->moved, BLOCKED);
}

/* ---- Compressed rows ---- */

static int64_t result_bytes(const o3_sparse_layer_t *layer) {
  return layer->columns * layer->weight.outputs * (int64_t)sizeof(float);
}

/* Of what is read again for each output, the channels of a piece. */
static double rate_of_piece(int64_t bytes) {
  size_t i = 0;
  while (bytes > ROWS_RATES[i].bytes) ++i;
  return ROWS_RATES[i].rate;
}

/* Few vectors wait for their sums. */
static double rows_rate(const o3_sparse_layer_t *layer) {
  const o3_sparse_weight_t *w = &layer->weight;
  int64_t most = w->is_matmul ? O3_SPARSE_PANEL : PIECE, vectors = divide_up(layer->columns, LANES);
  int64_t columns = vectors * LANES < most ? vectors * LANES : most;
  int64_t bytes = w->channels * w->group * columns * (int64_t)sizeof(float);
  double sums = fmin(1, 0.4 + 0.2 * (double)vectors);
  return rate_of_piece(bytes) * sums * (double)layer->columns / (double)(vectors * LANES);
}

/* What is made of input and result besides: plain images, where a neighbour on one side or the other has
 * blocks, with borders and without steps; panels of rows. */
static double rows_moving(const o3_sparse_layer_t *layer) {
  const o3_sparse_weight_t *w = &layer->weight;
  int64_t result = result_bytes(layer), input = layer->moved - result;
  bool far = w->channels * O3_SPARSE_PANEL * (int64_t)sizeof(float) > SECOND_CACHE;
  if (w->is_matmul) return moving(input, far ? FAR_PANELS : PANELS);
  double image = moving(layer->moved, PLAIN) + moving(result, PLAIN);
  if (w->window[0] * w->window[1] == 1) return image;
  return image + moving(input, w->steps[0] > 1 || w->steps[1] > 1 ? STEPS : BORDER);
}

double o3_sparse_cost(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block, int64_t entries) {
  double products = (double)entries * (double)(block->lanes * block->depth) * (double)layer->columns;
  int64_t bytes = o3_sparse_bytes(layer, block, entries);
  if (block->lanes == 1)
    return microseconds(products, rows_rate(layer), bytes, SPARSE_WAIT) + rows_moving(layer);
  /* Who waits for sums need not wait for weights as well. */
  double busy = fmin(1, columns_of_tile(layer->columns) * (double)block->lanes / (LANES * LATENCY));
  return microseconds(products, fmin(rate_of(block), busy), bytes, SPARSE_WAIT * busy) +
         moving(layer->moved, BLOCKED);
}

int64_t o3_sparse_cost_full(const o3_sparse_block_t *block) {
  double rows = rate_of_piece(SECOND_CACHE);
  return (int64_t)ceil((double)(block->lanes * block->depth) * rows / rate_of(block));
}

double o3_sparse_cost_join(const o3_sparse_layer_t *layer) {
  int64_t result = result_bytes(layer), input = layer->moved - result;
  return moving(result, BLOCKED) + (layer->weight.is_matmul ? 0 : moving(input, PLAIN));
}

int64_t o3_sparse_bytes_dense(const o3_sparse_layer_t *layer) {
  const o3_sparse_weight_t *w = &layer->weight;
  return w->outputs * w->channels * w->window[0] * w->window[1] * (int64_t)sizeof(float);
}

int64_t o3_sparse_bytes(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block, int64_t entries) {
  int64_t rows = o3_sparse_rows_size(&layer->weight, block);
  int64_t columns = o3_sparse_columns_of_entry(block) * (int64_t)sizeof(int32_t);
  return entries * (block->lanes * block->depth * (int64_t)sizeof(float) + columns) +
         rows * (int64_t)sizeof(int32_t);
}
