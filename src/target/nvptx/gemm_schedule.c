/* Which tile a product gets: the cost of each is estimated from waves of blocks and the rate at which a
 * multiprocessor multiplies a tile of that width, and the cheapest is taken. */
#include "target/nvptx/gemm_kernel.h"

enum { BLOCK_K = 64, ROWS = 64, STAGING_BYTES = 8 << 10 };

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int shared_bytes(const o3_gemm_schedule_t *s) {
  int ring = s->stages * (s->consumers * ROWS + s->columns) * 2 * BLOCK_K;
  int staging = s->store_by_tensor ? s->consumers * 2 * STAGING_BYTES : 0;
  return ring + staging + 16 * s->stages;
}

/* As many stages as fit, or as k has blocks. */
static void set_stages(const o3_gemm_t *g, int limit, o3_gemm_schedule_t *s) {
  int64_t blocks = ceil_div(ceil_div(g->k, BLOCK_K), s->split);
  s->stages = 12;
  while (s->stages > 2 && (shared_bytes(s) > limit || s->stages > blocks)) --s->stages;
}

/* Clocks of one multiprocessor, times some constant: products at the tensor cores' rate or at that of L2 and
 * shared memory, whichever is slower, then what a tile costs besides. */
static double cost(const o3_gemm_t *g, const o3_gemm_schedule_t *s, int multiprocessors) {
  enum { START = 1500, LATENCY = 700, STORE_PER_COLUMN = 8, SHARE = 900 };
  int64_t tiles = ceil_div(g->m, s->consumers * ROWS) * ceil_div(g->n, s->columns) * g->batch * s->split;
  int64_t turns = ceil_div(tiles, multiprocessors), blocks = ceil_div(ceil_div(g->k, BLOCK_K), s->split);
  double multiply = s->consumers * (double)s->columns * 2, load = (s->consumers * ROWS + s->columns) * 2.0;
  double step = multiply > load ? multiply : load;
  double tile = (double)blocks * step + STORE_PER_COLUMN * s->columns / s->split;
  return START + LATENCY + (s->split > 1 ? SHARE : 0) + (double)turns * tile;
}

static bool allowed(const o3_gemm_t *g, const o3_gemm_schedule_t *s, int limit) {
  if (s->columns > 64 && s->columns - 64 >= g->n) return false;
  if (s->consumers > 1 && g->m <= ROWS) return false;
  if (g->b_by_rows && s->columns % 64) return false;
  if (s->split > 1 && s->columns / s->split % 8) return false;
  if (s->split > ceil_div(g->k, BLOCK_K)) return false;
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
    if (!allowed(gemm, &s, limit)) continue;
    double estimate = cost(gemm, &s, multiprocessors);
    if (best.columns && estimate >= least) continue;
    best = s, least = estimate;
  }
  return best;
}
