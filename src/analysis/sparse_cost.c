/* Time is arithmetic, or the weights' way from memory if that takes longer, and then the way of input and
 * result, which products of few channels wait for. A tile of few columns waits for its own sums: a
 * multiply-add takes four cycles, so four vectors must be under way; dense tiles have three blocks of them.
 */
#include "analysis/sparse_cost.h"

#include <math.h>
#include <stddef.h>

enum { LANES = 16, TILE_COLUMNS = 28, DENSE_BLOCKS = 3, LATENCY = 4 };

static const struct {
  int64_t lanes, depth;
  const char *format;
  double rate;
} RATES[] = {
#define O3_DENSE_RATE(gflops, gigabytes)
#define O3_GROUP_RATE(rate)
#define O3_SPARSE_RATE(lanes, depth, format, rate) {lanes, depth, format, rate},
#include "analysis/sparse_rates.def"
#undef O3_DENSE_RATE
#undef O3_GROUP_RATE
#undef O3_SPARSE_RATE
};
enum { NUM_RATES = sizeof(RATES) / sizeof(RATES[0]) };

static const struct {
  double gflops, gigabytes;
} DENSE = {
#define O3_DENSE_RATE(gflops, gigabytes) gflops, gigabytes
#define O3_GROUP_RATE(rate)
#define O3_SPARSE_RATE(lanes, depth, format, rate)
#include "analysis/sparse_rates.def"
#undef O3_DENSE_RATE
#undef O3_GROUP_RATE
#undef O3_SPARSE_RATE
};

static const double GROUP_RATE =
#define O3_DENSE_RATE(gflops, gigabytes)
#define O3_GROUP_RATE(rate) rate
#define O3_SPARSE_RATE(lanes, depth, format, rate)
#include "analysis/sparse_rates.def"
#undef O3_DENSE_RATE
#undef O3_GROUP_RATE
#undef O3_SPARSE_RATE
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

/* Compressed rows read and write plain images: a conversion stands where their neighbours have blocks. */
static const double ROWS_MOVE = 1.5;

static double microseconds(const o3_sparse_layer_t *layer, double products, double rate,
                           double weight_bytes) {
  double compute = 2 * products / (DENSE.gflops * 1e3 * rate), load = weight_bytes / (DENSE.gigabytes * 1e3);
  return fmax(compute, load) + (double)layer->moved / (DENSE.gigabytes * 1e3);
}

double o3_sparse_cost_dense(const o3_sparse_layer_t *layer) {
  const o3_sparse_weight_t *w = &layer->weight;
  double products = (double)(divide_up(w->outputs, LANES) * LANES) * (double)w->channels *
                    (double)(w->window[0] * w->window[1]) * (double)layer->columns;
  double busy = fmin(1, columns_of_tile(layer->columns) * DENSE_BLOCKS / LATENCY);
  return microseconds(layer, products, busy * layer->dense_gain, (double)o3_sparse_bytes_dense(layer));
}

double o3_sparse_cost(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block, int64_t entries) {
  double products = (double)entries * (double)(block->lanes * block->depth) * (double)layer->columns;
  double busy = block->lanes == 1
                    ? 1
                    : fmin(1, columns_of_tile(layer->columns) * (double)block->lanes / (LANES * LATENCY));
  o3_sparse_layer_t moving = *layer;
  if (block->lanes == 1) moving.moved = (int64_t)(ROWS_MOVE * (double)layer->moved);
  return microseconds(&moving, products, rate_of(block) * busy,
                      (double)o3_sparse_bytes(layer, block, entries));
}

int64_t o3_sparse_bytes_dense(const o3_sparse_layer_t *layer) {
  const o3_sparse_weight_t *w = &layer->weight;
  return w->outputs * w->channels * w->window[0] * w->window[1] * (int64_t)sizeof(float);
}

int64_t o3_sparse_bytes(const o3_sparse_layer_t *layer, const o3_sparse_block_t *block, int64_t entries) {
  int64_t rows = o3_sparse_num_rows(&layer->weight, block) + 1;
  int64_t columns = o3_sparse_columns_of_entry(block) * (int64_t)sizeof(int32_t);
  return entries * (block->lanes * block->depth * (int64_t)sizeof(float) + columns) +
         rows * (int64_t)sizeof(int32_t);
}
