/* Which tile a product gets: the cost of each is estimated from waves of blocks and the rate at which a
 * multiprocessor multiplies a tile of that width, and the cheapest is taken. */
#include "target/nvptx/gemm_kernel.h"

enum { BLOCK_K = 64, ROWS = 64, STAGING_BYTES = 8 << 10 };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t o3_gemm_steps(const o3_gemm_t *g) {
  const o3_gemm_window_t *w = g->window;
  return w ? w->taps[0] * w->taps[1] * ceil_div(w->channels, BLOCK_K) : ceil_div(g->k, BLOCK_K);
}

static int shared_bytes(const o3_gemm_schedule_t *s) {
  int ring = s->stages * (s->consumers * ROWS + s->columns) * 2 * BLOCK_K;
  int staging = s->store_by_tensor ? s->consumers * 2 * STAGING_BYTES : 0;
  return ring + staging + 16 * s->stages;
}

/* As many stages as fit, or as k has blocks. */
static void set_stages(const o3_gemm_t *g, int limit, o3_gemm_schedule_t *s) {
  int64_t blocks = ceil_div(o3_gemm_steps(g), s->split);
  s->stages = 12;
  while (s->stages > 2 && (shared_bytes(s) > limit || s->stages > blocks)) --s->stages;
}

static int64_t count_blocks(const o3_gemm_t *g, const o3_gemm_schedule_t *s) {
  return ceil_div(g->m, s->consumers * ROWS) * ceil_div(g->n, s->columns) * g->batch[0] * g->batch[1] *
         s->split;
}

/* Microseconds, as fitted to 200 products of BERT and ResNet-50 with different tiles on an H200 (132
 * multiprocessors, median error 8 %): a start, then for each turn of the multiprocessors its start, the
 * epilogue, and steps of k at the rate of the tensor cores or of the copies, whichever is slower. */
static double cost(const o3_gemm_t *g, const o3_gemm_schedule_t *s, int multiprocessors) {
  static const double START = 1.13, TURN = 0.44, STORE = 3.2e-3, MULTIPLY = 1.157e-3, LOAD = 9.4e-4,
                      STEP = 0.075, SHARE = 1.9;
  int64_t turns = ceil_div(count_blocks(g, s), multiprocessors);
  int64_t blocks = ceil_div(o3_gemm_steps(g), s->split);
  double multiply = MULTIPLY * s->consumers * s->columns, load = LOAD * (s->consumers * ROWS + s->columns);
  double step = multiply > load ? multiply : load;
  double store = STORE * s->columns * s->consumers / s->split;
  double turn = TURN + store + (double)blocks * (step > STEP ? step : STEP);
  return START + (double)turns * turn + (s->split > 1 ? SHARE : 0);
}

/* Sums are shared only where that fills multiprocessors that would have no tile, and few enough to be quick.
 */
static bool allowed(const o3_gemm_t *g, const o3_gemm_schedule_t *s, int multiprocessors, int limit) {
  if (s->columns > 64 && s->columns - 64 >= g->n) return false;
  if (s->consumers > 1 && g->m <= ROWS) return false;
  if (g->b_by_rows && s->columns % 64) return false;
  if (s->split > 1 && s->columns / s->split % 8) return false;
  if (s->split > o3_gemm_steps(g)) return false;
  if (s->split > 1 && (s->columns > 64 || count_blocks(g, s) > multiprocessors)) return false;
  return shared_bytes(s) <= limit;
}

o3_gemm_schedule_t o3_gemm_schedule(const o3_gemm_t *gemm, int multiprocessors, int limit) {
  static const int COLUMNS[] = {256, 192, 128, 64, 32, 16};
  o3_gemm_schedule_t best = {0};
  double least = 0;
  for (int i = 0; i < (int)(sizeof(COLUMNS) / sizeof(COLUMNS[0])) * 2 * 4; ++i) {
    o3_gemm_schedule_t s = {.consumers = 1 + i / 4 % 2,
                            .columns = COLUMNS[i / 8],
                            .split = 1 << i % 4,
                            .blocks = 1,
                            .group_rows = 8};
    s.store_by_tensor = gemm->out != O3_GPU_F32 && s.split == 1 && s.columns % 64 == 0;
    set_stages(gemm, limit, &s);
    if (!allowed(gemm, &s, multiprocessors, limit)) continue;
    double estimate = cost(gemm, &s, multiprocessors);
    if (best.columns && estimate >= least) continue;
    best = s, least = estimate;
  }
  return best;
}
