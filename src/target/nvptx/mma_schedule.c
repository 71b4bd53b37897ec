/* Which tile a product gets: for each of some shapes of blocks, cycles are estimated from what a
 * multiprocessor multiplies, reads from shared memory and copies, and from the time that a step takes alone;
 * the quickest is taken. */
#include "target/nvptx/mma_kernel.h"

#include <math.h>

#include "schedule/gpu.h"

enum { WARP = O3_GPU_WARP, REGISTERS = 64 << 10, LINE = 128, MAX_BLOCKS = 8, BANKS_BYTES = 128 };

typedef struct shape {
  int warps[2], pieces[2], slices;
} shape_t;

/* Of pieces of 16 x 16. */
static const shape_t HALF_PIECES[] = {
    {{2, 4}, {4, 4}, 1}, {{2, 2}, {4, 4}, 1}, {{2, 4}, {4, 2}, 1}, {{2, 2}, {4, 2}, 1}, {{2, 2}, {2, 4}, 1},
    {{2, 2}, {2, 2}, 1}, {{2, 2}, {2, 2}, 2}, {{1, 2}, {2, 2}, 2}, {{2, 1}, {2, 2}, 2}, {{1, 1}, {2, 2}, 4},
    {{1, 4}, {1, 2}, 1}, {{1, 4}, {1, 2}, 2}, {{1, 2}, {1, 2}, 4}, {{1, 1}, {1, 2}, 4}};
/* Of pieces of 16 x 32. */
static const shape_t WORD_PIECES[] = {
    {{4, 2}, {2, 2}, 1}, {{2, 4}, {2, 2}, 1}, {{2, 2}, {2, 2}, 1}, {{2, 2}, {2, 2}, 2}, {{2, 1}, {2, 2}, 2},
    {{2, 1}, {2, 2}, 4}, {{1, 1}, {2, 2}, 4}, {{1, 1}, {2, 2}, 8}, {{2, 2}, {2, 1}, 2}, {{1, 1}, {2, 1}, 4},
    {{1, 1}, {2, 1}, 8}, {{1, 1}, {1, 1}, 4}, {{1, 1}, {1, 1}, 8}};

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int least(int a, int b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

static int threads_of(const o3_mma_schedule_t *s) { return WARP * s->warps[0] * s->warps[1] * s->slices; }

/* Of a thread: sums, two sets of fragments, addresses, and what is on its way through registers. */
static int registers_of(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_card_t *card,
                        const o3_mma_schedule_t *s) {
  enum { OTHERS = 72, WORDS = 4 * WARP };
  int rows = s->pieces[0] * u->rows, columns = s->pieces[1] * u->columns;
  int sums = 2 * u->num_pairs * s->pieces[0] * s->pieces[1], fragments = (rows + columns) * 32 / WORDS;
  int lines = rows * s->warps[0] + columns * s->warps[1];
  int copied = o3_mma_is_async(g, card->sm) ? 0 : lines * s->line_bytes / 4 / threads_of(s);
  return least(sums + 2 * fragments + copied + OTHERS, 255);
}

/* Multiply-adds of a multiprocessor in a cycle. */
static double rate_of(const o3_gemm_t *g, const o3_mma_card_t *card) {
  static const double HALVES[2] = {512, 1024}, WORDS[2] = {64, 128};
  bool large = card->sm == 80 || card->sm >= 90;
  if (g->element == O3_GPU_TF32) return HALVES[large] / 2;
  if (g->element != O3_GPU_F32) return HALVES[large];
  return WORDS[card->sm > 80];
}

/* As many stages as there are steps and shared memory; blocks that fit side by side. */
static void set_stages(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_card_t *card,
                       o3_mma_schedule_t *s) {
  enum { STAGES = 4 };
  int64_t steps = ceil_div(g->k, s->line_bytes / o3_gpu_element_info(g->element)->bytes);
  s->stages = o3_mma_is_async(g, card->sm) ? STAGES : 2;
  while (s->stages > 2 && (o3_mma_shared_bytes(g, u, s) > card->shared_bytes || s->stages > steps + 1))
    --s->stages;
  int fits =
      (card->shared_bytes + O3_GPU_RESERVED_SHARED) / (o3_mma_shared_bytes(g, u, s) + O3_GPU_RESERVED_SHARED);
  s->blocks = least(least(fits, REGISTERS / (threads_of(s) * registers_of(g, u, card, s))), MAX_BLOCKS);
  if (s->blocks < 1) s->blocks = 1;
}

/* Fitted to 600 measured kernels of one H200, halves as code of 8.0: what is chosen by them takes 3 % longer
 * than the best measured. Rates are bytes a cycle, the others cycles. */
typedef struct rates {
  double efficiency; /* of multiplying, of the vendor's figure */
  double copied, stored, sliced;
  double alone, start; /* of a step that nothing else hides; of a block */
  double waiting;      /* see slowed() */
} rates_t;
static const rates_t HALF_RATES = {0.86, 33, 64, 12, 83, 385, 0.8},
                     WORD_RATES = {0.8, 23, 47, 13, 76, 3000, 0.16};

/* A multiprocessor with fewer warps than these waits for their reads. */
static double slowed(const rates_t *rates, int64_t warps) {
  enum { ENOUGH = 12 };
  return warps < ENOUGH ? pow((double)ENOUGH / (double)warps, rates->waiting) : 1;
}

static double cost(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_card_t *card,
                   const o3_mma_schedule_t *s) {
  const rates_t *rates = g->element == O3_GPU_F32 ? &WORD_RATES : &HALF_RATES;
  int rows = s->warps[0] * s->pieces[0] * u->rows, columns = s->warps[1] * s->pieces[1] * u->columns;
  int depth = s->line_bytes / o3_gpu_element_info(g->element)->bytes;
  int64_t tiles = ceil_div(g->m, rows) * ceil_div(g->n, columns) * g->batch[0] * g->batch[1];
  int64_t turns = ceil_div(tiles, card->multiprocessors), side = turns < s->blocks ? turns : s->blocks;
  double steps = (double)ceil_div(g->k, depth), sums = (double)rows * columns * 4;
  double multiply = (double)rows * columns * depth / (rate_of(g, card) * rates->efficiency);
  int warp_lines = (s->pieces[0] * u->rows + s->pieces[1] * u->columns) * s->warps[0] * s->warps[1];
  double step = most(multiply, (double)(warp_lines + rows + columns) * s->line_bytes / BANKS_BYTES);
  double copied = (double)(rows + columns) * s->line_bytes / rates->copied;
  double store = sums / rates->stored + (s->slices - 1) * sums / rates->sliced;
  double together = most(step * slowed(rates, side * threads_of(s) / WARP), copied) * steps + store;
  double alone = (step + rates->alone) * steps + store;
  int64_t rounds = ceil_div(tiles, (int64_t)card->multiprocessors * s->blocks);
  return most((double)turns * together, (double)rounds * (alone + rates->start));
}

static bool is_staged(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_schedule_t *s) {
  int line = s->pieces[1] * u->columns * 2;
  bool whole = g->n % 8 == 0 && g->d_pitch % 8 == 0 && g->d_batch[0] % 8 == 0 && g->d_batch[1] % 8 == 0;
  return g->out != O3_GPU_F32 && whole && (line == LINE / 2 || line == LINE);
}

/* Lines of B by rows are as long as a tile is wide: words need 32 columns, for their order of chunks. */
static bool allowed(const o3_gemm_t *g, const o3_mma_unit_t *u, const o3_mma_card_t *card,
                    const o3_mma_schedule_t *s) {
  int columns = s->warps[1] * s->pieces[1] * u->columns;
  if (g->b_by_rows && columns * o3_gpu_element_info(g->element)->bytes < LINE / 2) return false;
  if (g->b_by_rows && g->element == O3_GPU_F32 && columns < 32) return false;
  return o3_mma_shared_bytes(g, u, s) <= card->shared_bytes;
}

static const shape_t *shapes_of(const o3_mma_unit_t *u, int *count) {
  bool words = u->columns > 16;
  *count = (int)(words ? sizeof(WORD_PIECES) / sizeof(shape_t) : sizeof(HALF_PIECES) / sizeof(shape_t));
  return words ? WORD_PIECES : HALF_PIECES;
}

static bool has_shape(const o3_mma_schedule_t *s, const shape_t *shape) {
  for (int i = 0; i < 2; ++i)
    if (s->warps[i] != shape->warps[i] || s->pieces[i] != shape->pieces[i]) return false;
  return s->slices == shape->slices;
}

const char *o3_mma_refuse_schedule(const o3_gemm_t *g, const o3_mma_schedule_t *s,
                                   const o3_mma_card_t *card) {
  enum { MAX_STAGES = 8 };
  const o3_mma_unit_t *u = o3_mma_unit(card->sm, g->element);
  int count, i = 0;
  const shape_t *shapes = shapes_of(u, &count);
  while (i < count && !has_shape(s, &shapes[i])) ++i;
  if (i == count) return "its warps, pieces and slices are none of the tiles there are";
  if (s->line_bytes != LINE) return "its lines are not of 128 bytes";
  if (s->stages < 2 || s->stages > (o3_mma_is_async(g, card->sm) ? MAX_STAGES : 2))
    return "its stages are not 2, or with asynchronous copies 2 to 8";
  if (s->blocks < 1 || s->blocks > MAX_BLOCKS || s->group_rows < 1)
    return "its blocks are not 1 to 8, or a count is zero";
  if (s->staged && !is_staged(g, u, s)) return "the result's rows cannot go through shared memory";
  return allowed(g, u, card, s) ? NULL
                                : "its stages do not fit into the shared memory, or B's lines are too short";
}

o3_mma_schedule_t o3_mma_schedule(const o3_gemm_t *g, const o3_mma_card_t *card) {
  const o3_mma_unit_t *u = o3_mma_unit(card->sm, g->element);
  int count;
  const shape_t *shapes = shapes_of(u, &count);
  o3_mma_schedule_t best = {0};
  double quickest = 0;
  for (int i = 0; i < count; ++i) {
    o3_mma_schedule_t s = {.warps = {shapes[i].warps[0], shapes[i].warps[1]},
                           .pieces = {shapes[i].pieces[0], shapes[i].pieces[1]},
                           .slices = shapes[i].slices,
                           .line_bytes = LINE,
                           .group_rows = 8};
    s.staged = is_staged(g, u, &s);
    set_stages(g, u, card, &s);
    if (!allowed(g, u, card, &s)) continue;
    double estimate = cost(g, u, card, &s);
    if (best.blocks && estimate >= quickest) continue;
    best = s, quickest = estimate;
  }
  return best;
}
