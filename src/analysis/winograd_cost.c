/* Nanoseconds.
 *
 *     direct      images * height * width * 9 * C * M / 16 * FMA
 *     winograd    R * p^2 * C * M / 16 * FMA  +  T * (C * INPUT + M * OUTPUT) / 16 * CYCLE
 *                 T: tiles, whole ones, so that 7x7 outputs cost as 8x8; p^2: 16 or 36
 *                 R: T, but at least 3, whose sums hide an FMA's latency; where T is known at run time only,
 *                 a multiple of 8, the rows of the register tile there
 *     both        that over the cores, but at least the bytes of weights that no cache keeps until the
 *                 next run, at memory's rate
 *
 * where C and M are channels, in whole blocks, and FMA is the time of one multiply-add of 16 lanes at the
 * machine's peak. INPUT and OUTPUT are what a transform of 16 channels of a tile takes (winograd_costs.def,
 * measured): waiting for lines, mostly, which wider units do not shorten. Weights are read once a run. A
 * core's second-level cache keeps a part; all stay where those of the whole model, grown alike, fit the
 * third. The rest comes from memory while the arithmetic goes on, at a rate that all cores share: transformed
 * weights are 16/9 or 4 times as large, and at few pixels with many channels they take longer to arrive than
 * the multiplications that they save. */
#include <stdio.h>

#include "analysis/winograd.h"
#include "ir/block_lanes.h"

/* Gains are estimated with care, for a direct convolution is never wrong: on large images they are as much
 * larger. */
#define MORE_ON_LARGE_IMAGES 1.2

enum { LANES = O3_BLOCK_LANES, DIRECT_POINTS = 9 };
/* Of what is known only at run time: networks halve an image as they double its channels, 64 of 56 x 56. */
enum { ASSUMED_IMAGES = 1, ASSUMED_CHANNELS_BY_SIZE = 64 * 56 };

static const struct {
  int tile;
  double input, output; /* units a transform of one tile and 16 channels takes */
} COSTS[] = {
#define O3_WINOGRAD_COST(tile, input, output) {tile, input, output},
#include "analysis/winograd_costs.def"
#undef O3_WINOGRAD_COST
};
/* Of a core at 3.7 GHz. Clocks of servers differ by less than such a model is wrong. */
static const double CYCLE = 0.27;

/* Multiply-adds are this much slower than those of the direct kernel, whose sums are longer. */
static const double PRODUCT_OVERHEAD = 1.05;

/* Rows of a point's product that take no longer than fewer, and of a register tile for any number of rows. */
static const double LEAST_ROWS = 3, TILE_ROWS = 8;

typedef struct sizes {
  double images, height, width, channels, outputs, model_bytes;
  bool known; /* the number of pixels */
} sizes_t;

static double blocks_of(double channels) { return (double)(int64_t)((channels + LANES - 1) / LANES); }

static double assumed(int64_t size, double otherwise) { return size < 0 ? otherwise : (double)size; }

static double tiles(double size, int tile) { return (double)(int64_t)((size + tile - 1) / tile); }

static double weight_bytes(const sizes_t *s, int points) {
  return points * blocks_of(s->channels) * blocks_of(s->outputs) * LANES * LANES * sizeof(float);
}

static double fma_time(const o3_machine_t *machine) {
  return CYCLE * LANES * sizeof(float) / (machine->vector_bytes * machine->fma_ports);
}

/* |arithmetic|: of one core. */
static double cost(const sizes_t *s, double arithmetic, int points, const o3_machine_t *machine) {
  double grown = s->model_bytes * points / DIRECT_POINTS, bytes = weight_bytes(s, points);
  double kept = grown <= (double)machine->l3_bytes ? bytes : (double)machine->l2_bytes;
  double memory = (bytes - kept) / machine->memory_gbps;
  arithmetic /= machine->cores;
  return memory > arithmetic ? memory : arithmetic;
}

static double direct_cost(const sizes_t *s, const o3_machine_t *machine) {
  double pixels = s->images * s->height * s->width;
  double products = pixels * DIRECT_POINTS * blocks_of(s->channels) * blocks_of(s->outputs) * LANES;
  return cost(s, products * fma_time(machine), DIRECT_POINTS, machine);
}

static double tile_count(const sizes_t *s, int tile) {
  return s->images * tiles(s->height, tile) * tiles(s->width, tile);
}

static double product_rows(const sizes_t *s, double count) {
  if (!s->known) return (double)(int64_t)((count + TILE_ROWS - 1) / TILE_ROWS) * TILE_ROWS;
  return count < LEAST_ROWS ? LEAST_ROWS : count;
}

static double winograd_cost(const sizes_t *s, size_t form, const o3_machine_t *machine) {
  int tile = COSTS[form].tile, points = o3_winograd_find(tile)->points;
  double count = tile_count(s, tile), c = blocks_of(s->channels), m = blocks_of(s->outputs);
  double products = product_rows(s, count) * points * points * c * m * LANES * PRODUCT_OVERHEAD;
  double transforms = count * (c * COSTS[form].input + m * COSTS[form].output);
  return cost(s, products * fma_time(machine) + transforms * CYCLE, points * points, machine);
}

static void explain_winograd(const sizes_t *s, o3_winograd_choice_t *choice, double gain) {
  int points = o3_winograd_find(choice->tile)->points;
  double fewer =
      DIRECT_POINTS * s->images * s->height * s->width / (tile_count(s, choice->tile) * points * points);
  snprintf(choice->reason, sizeof(choice->reason),
           "winograd %dx%d: %.1fx fewer multiplications, %.1fx faster by the model, weights %.1f MB",
           choice->tile, choice->tile, fewer, gain, weight_bytes(s, points * points) / 1e6);
}

/* The form that comes nearest to paying off, and what keeps it from that. */
static void explain_direct(const sizes_t *s, o3_winograd_choice_t *choice, int tile, double loss) {
  int points = o3_winograd_find(tile)->points;
  double covered = tile_count(s, tile) * tile * tile, pixels = s->images * s->height * s->width;
  snprintf(choice->reason, sizeof(choice->reason),
           "direct: winograd %dx%d would take %.2fx the time: tiles waste %.0f %%, weights %.1f MB", tile,
           tile, loss, 100 * (covered - pixels) / pixels, weight_bytes(s, points * points) / 1e6);
}

void o3_winograd_choose(const o3_winograd_layer_t *layer, const o3_machine_t *machine,
                        o3_winograd_choice_t *choice) {
  double size = tiles(ASSUMED_CHANNELS_BY_SIZE, (int)layer->channels);
  const sizes_t s = {assumed(layer->images, ASSUMED_IMAGES),
                     assumed(layer->height, size),
                     assumed(layer->width, size),
                     (double)layer->channels,
                     (double)layer->outputs,
                     (double)layer->model_bytes,
                     layer->images >= 0 && layer->height >= 0 && layer->width >= 0};
  *choice = (o3_winograd_choice_t){.tile = 0, .gain = 1, .likely_gain = 1};
  if (s.images * s.height * s.width <= 0) {
    snprintf(choice->reason, sizeof(choice->reason), "direct: there are no pixels");
    return;
  }
  double direct = direct_cost(&s, machine), best = 0;
  int nearest = 0;
  for (size_t i = 0; i < sizeof(COSTS) / sizeof(COSTS[0]); ++i) {
    double cost = winograd_cost(&s, i, machine);
    if (nearest && cost >= best) continue;
    best = cost;
    nearest = COSTS[i].tile;
  }
  if (best < direct) {
    choice->tile = nearest;
    choice->gain = direct / best;
    choice->likely_gain = MORE_ON_LARGE_IMAGES * choice->gain;
    explain_winograd(&s, choice, direct / best);
  } else {
    explain_direct(&s, choice, nearest, best / direct);
  }
}
