/* The unit is one multiply-add of 16 lanes at the machine's peak, about a nanosecond on a core of 118
 * GFLOP/s.
 *
 *     direct      images * height * width * 9 * C * M / 16
 *     winograd    T * p^2 * C * M / 16  +  T * (C * INPUT + M * OUTPUT) / 16
 *                 T: tiles, whole ones, so that 7x7 outputs cost as 8x8; p^2: 16 or 36
 *     both        at least bytes of weights that no cache keeps until the next run * BYTE
 *
 * where C and M are channels, in whole blocks. INPUT and OUTPUT are the units that a transform of 16 channels
 * of a tile takes (winograd_costs.def, measured). Weights are read once a run: what exceeds a core's
 * second-level cache comes from memory, while the arithmetic goes on. Its rate is that of all threads
 * together, so its time stays as their number grows while that of the arithmetic falls; the choice is made
 * for two. Transformed weights are 16/9 or 4 times as large: at few pixels with many channels they take
 * longer to arrive than the multiplications that they save. */
#include <stdio.h>

#include "analysis/winograd.h"

enum { LANES = 16, DIRECT_POINTS = 9 };
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
static const double THREADS = 2;
/* Two cores that compute get 20 GB/s. */
static const double BYTE = 0.18;

/* Multiply-adds are this much slower than those of the direct kernel, whose sums are longer. */
static const double PRODUCT_OVERHEAD = 1.05;

typedef struct sizes {
  double images, height, width, channels, outputs;
} sizes_t;

static double blocks_of(double channels) { return (double)(int64_t)((channels + LANES - 1) / LANES); }

static double assumed(int64_t size, double otherwise) { return size < 0 ? otherwise : (double)size; }

static double tiles(double size, int tile) { return (double)(int64_t)((size + tile - 1) / tile); }

static double weight_bytes(const sizes_t *s, int points) {
  return points * blocks_of(s->channels) * blocks_of(s->outputs) * LANES * LANES * sizeof(float);
}

static double cost(const sizes_t *s, double arithmetic, int points, const o3_machine_t *machine) {
  double memory = (weight_bytes(s, points) - (double)machine->l2_bytes) * BYTE;
  return memory > arithmetic / THREADS ? memory : arithmetic / THREADS;
}

static double direct_cost(const sizes_t *s, const o3_machine_t *machine) {
  double pixels = s->images * s->height * s->width;
  return cost(s, pixels * DIRECT_POINTS * blocks_of(s->channels) * blocks_of(s->outputs) * LANES,
              DIRECT_POINTS, machine);
}

static double tile_count(const sizes_t *s, int tile) {
  return s->images * tiles(s->height, tile) * tiles(s->width, tile);
}

static double winograd_cost(const sizes_t *s, size_t form, const o3_machine_t *machine) {
  int tile = COSTS[form].tile, points = o3_winograd_find(tile)->points;
  double count = tile_count(s, tile), c = blocks_of(s->channels), m = blocks_of(s->outputs);
  double products = count * points * points * c * m * LANES * PRODUCT_OVERHEAD;
  double transforms = count * (c * COSTS[form].input + m * COSTS[form].output);
  return cost(s, products + transforms, points * points, machine);
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
  const sizes_t s = {assumed(layer->images, ASSUMED_IMAGES), assumed(layer->height, size),
                     assumed(layer->width, size), (double)layer->channels, (double)layer->outputs};
  *choice = (o3_winograd_choice_t){.tile = 0, .gain = 1};
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
    explain_winograd(&s, choice, direct / best);
  } else {
    explain_direct(&s, choice, nearest, best / direct);
  }
}
