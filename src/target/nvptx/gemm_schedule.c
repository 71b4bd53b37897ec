/* Which tile a product gets: the cost of each is estimated from waves of blocks and the rate at which a
 * multiprocessor multiplies a tile of that width, and the cheapest is taken. */
#include "schedule/gpu.h"
#include "target/nvptx/gemm_writer.h"

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t o3_gemm_steps(const o3_gemm_t *g) {
  const o3_gemm_window_t *w = g->window;
  return w ? w->taps[0] * w->taps[1] * ceil_div(w->channels, o3_gemm_block_k(g))
           : ceil_div(g->k, o3_gemm_block_k(g));
}

int64_t o3_gemm_batches(const o3_gemm_t *g) { return g->batch[0] * g->batch[1]; }

/* ---- Layout ---- */

int o3_gemm_tile_rows(const o3_gemm_schedule_t *s) {
  return O3_GEMM_ROWS * s->products * (s->alternate ? 1 : s->consumers);
}

static int stage_bytes(const o3_gemm_schedule_t *s) {
  return (o3_gemm_tile_rows(s) + s->columns) * O3_GEMM_ROW_BYTES;
}

static int partial_bytes(const o3_gemm_schedule_t *s) {
  return s->split > 1 ? o3_gemm_tile_rows(s) * s->columns * 4 : 0;
}

int o3_gemm_ring_bytes(const o3_gemm_schedule_t *s) {
  int ring = s->stages * stage_bytes(s), partial = partial_bytes(s);
  return ring > partial ? ring : partial;
}

static int staging_bytes(const o3_gemm_schedule_t *s) {
  return s->store_by_tensor ? s->consumers * O3_GEMM_STAGING_BUFFERS * O3_GEMM_STAGING_BYTES : 0;
}

int o3_gemm_barrier_offset(const o3_gemm_schedule_t *s) { return o3_gemm_ring_bytes(s) + staging_bytes(s); }

int o3_gemm_shared_bytes(const o3_gemm_schedule_t *s) {
  return o3_gemm_barrier_offset(s) + 2 * s->stages * 8 + (s->streams ? O3_GEMM_STREAM_SHARED : 0);
}

/* ---- Estimates ---- */

/* As many stages as fit, or as k has blocks. */
static void set_stages(const o3_gemm_t *g, int limit, o3_gemm_schedule_t *s) {
  int64_t blocks = ceil_div(o3_gemm_steps(g), s->split);
  s->stages = 12;
  while (s->stages > 2 && (o3_gemm_shared_bytes(s) > limit || s->stages > blocks)) --s->stages;
}

int64_t o3_gemm_count_tiles(const o3_gemm_t *g, const o3_gemm_schedule_t *s) {
  return ceil_div(g->m, o3_gemm_tile_rows(s)) * ceil_div(g->n, s->columns) * o3_gemm_batches(g);
}

static int64_t count_blocks(const o3_gemm_t *g, const o3_gemm_schedule_t *s) {
  return o3_gemm_count_tiles(g, s) * s->split;
}

/* Microseconds that blocks lose which share k, and those of a cluster lie side by side: large ones that are
 * to fill the card wait for each other. */
static double sharing(const o3_gemm_t *g, const o3_gemm_schedule_t *s, const o3_gpu_t *gpu) {
  static const double SHARE = 1.9, CROWDED = 4, ROOM = 1.0 / 14;
  if (s->split == 1) return 0;
  double beyond = (double)count_blocks(g, s) / gpu->multiprocessors - (1 - ROOM * s->split);
  return SHARE + (beyond > 0 ? CROWDED * beyond : 0);
}

/* Microseconds, as fitted to 200 products of BERT and ResNet-50 with different tiles on an H200 (132
 * multiprocessors, median error 8 %): a start, then for each turn of the multiprocessors its start, the
 * epilogue, and steps of k at the rate of the tensor cores (of which 0.945 are reached) or of the copies,
 * whichever is slower. Warpgroups that alternate hide all epilogues but the last, at a lower rate; turns of
 * others lose some of it, too, where tiles are narrower than 128 x 256, whose loads take WIDEST of the time
 * of the products. Late stores hide the same, at the full rate; LATE is what their first and last tiles lose
 * beyond. Parts of columns that are promoted one after the other read A more often. */
static double cost(const o3_gemm_t *g, const o3_gemm_schedule_t *s, const o3_gpu_t *gpu) {
  static const double START = 1.13, TURN = 0.44, STORE = 3.2e-3, TENSOR_CORES = 0.945, LOAD = 9.4e-4,
                      STEP = 0.075, ALTERNATE = 1.12, WIDEST = 0.61, CONTEND = 0.35, PARTS = 1.03, LATE = 2;
  int64_t turns = ceil_div(count_blocks(g, s), gpu->multiprocessors);
  int64_t blocks = ceil_div(o3_gemm_steps(g), s->split);
  int products = o3_gemm_tile_rows(s) / O3_GEMM_ROWS;
  double flop = 2.0 * O3_GEMM_ROWS * O3_GEMM_BLOCK_K * products *
                s->columns; /* of halves: others in proportion to their rate */
  double multiply = flop * gpu->multiprocessors / (TENSOR_CORES * gpu->fp16_tflops * 1e6),
         load = LOAD * (o3_gemm_tile_rows(s) + s->columns);
  double step = multiply > load ? multiply : load;
  if (s->promote > 1) step *= PARTS;
  if (turns > 1 && s->consumers > 1 && multiply > load && !s->alternate)
    step += CONTEND * (load - WIDEST * multiply);
  double steps = (double)blocks * (step > STEP ? step : STEP);
  double store = TURN + STORE * s->columns * products / s->split;
  if (s->late_stores) return START + LATE + store + (double)turns * steps;
  if (!s->alternate) return START + (double)turns * (store + steps) + sharing(g, s, gpu);
  steps *= ALTERNATE;
  return START + store + (double)turns * (steps > store ? steps : (steps + store) / 2);
}

/* ---- What can be built ---- */

static bool is_between(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }

/* Sums of a part of the columns, of one stage, are in registers besides those of all. */
static const char *refuse_promotion(const o3_gemm_schedule_t *s) {
  if (!is_between(s->promote, 1, 4) || s->columns % (16 * s->promote))
    return "its columns are not so many parts";
  if (s->columns + s->columns / s->promote > 384)
    return "a thread has no registers for sums of stages besides";
  bool alone = s->products == 1 && !s->alternate && s->split == 1;
  return alone ? NULL : "sums of stages are of warpgroups that have one product alone";
}

static const char *refuse_tile(const o3_gemm_t *g, const o3_gemm_schedule_t *s) {
  int panel = g->b_by_rows || s->store_by_tensor ? 64 : 16;
  if (!is_between(s->consumers, 1, 2) || !is_between(s->products, 1, O3_GEMM_MAX_PRODUCTS))
    return "it has neither one nor two warpgroups or products";
  if (!is_between(s->columns, panel, O3_GEMM_MAX_COLUMNS) || s->columns % panel)
    return "its columns are no multiple of 64, or of 16 where these do, up to 256";
  if (s->products * s->columns > 384) return "a thread has no registers for so many sums";
  if (s->promote) return refuse_promotion(s);
  if (s->alternate && s->consumers != 2) return "one warpgroup alone cannot alternate";
  return NULL;
}

static const char *refuse_cluster(const o3_gemm_t *g, const o3_gemm_schedule_t *s) {
  if (!is_between(s->split, 1, 8) || (s->split & (s->split - 1)))
    return "it splits k into other than 1, 2, 4, 8";
  if (s->split == 1) return NULL;
  if (s->alternate || s->products > 1 || s->store_by_tensor || s->columns / s->split % 8)
    return "blocks that share k have one product of their own and a multiple of 8 columns each";
  return s->split > o3_gemm_steps(g) ? "it splits k into more parts than it has" : NULL;
}

static const char *refuse_streams(const o3_gemm_t *g, const o3_gemm_schedule_t *s) {
  if (!s->streams) return NULL;
  int64_t tiles = o3_gemm_count_tiles(g, s), steps = tiles * o3_gemm_steps(g);
  if (s->split > 1 || s->alternate || s->products > 1 || s->promote)
    return "blocks that share the steps of all tiles have one product of their own";
  if (!is_between(s->streams, 1, steps) || steps * (s->streams + 1) > INT32_MAX ||
      o3_gemm_stream_bytes(s) > INT32_MAX)
    return "blocks that share the steps of all tiles have one each, and their numbers fit into 32 bits";
  if (g->one_of_batches) return "its blocks count in memory that batches would share";
  return tiles * s->consumers > O3_GPU_COUNTERS ? "there are not counters for so many tiles" : NULL;
}

/* A step of the next tile for each panel, and one that the loop begins with. */
static const char *refuse_late_stores(const o3_gemm_t *g, const o3_gemm_schedule_t *s) {
  if (!s->late_stores) return NULL;
  if (!s->store_by_tensor || s->alternate || s->products > 1 || s->split > 1 || s->promote || s->streams)
    return "late stores are by TMA, of warpgroups that have one product of a tile of their block's own";
  return o3_gemm_steps(g) <= s->columns / 64 ? "late stores are of more panels than there are steps" : NULL;
}

const char *o3_gemm_refuse_schedule(const o3_gemm_t *g, const o3_gemm_schedule_t *s, int limit) {
  const char *why = refuse_tile(g, s);
  if (!why) why = refuse_cluster(g, s);
  if (!why) why = refuse_streams(g, s);
  if (!why) why = refuse_late_stores(g, s);
  if (why) return why;
  if (s->store_by_tensor && o3_gpu_element_info(g->out)->bytes != 2)
    return "results other than of two bytes are stored from registers";
  if (s->stages < 1 || s->group_rows < 1) return "a count is zero";
  if (s->stages == 1 && !s->promote && ceil_div(o3_gemm_steps(g), s->split) > 1)
    return "a stage is given back when the next one is multiplied, so one alone is not enough";
  return o3_gemm_shared_bytes(s) > limit ? "its stages do not fit into the shared memory" : NULL;
}

/* ---- Choices ---- */

/* Sums are shared only where that fills multiprocessors that would have no tile, and few enough to be quick.
 * Late stores are for tiles that follow others, and hide no epilogue: 4096 x 3072 x 768 with bias and GELU
 * takes 35.7 us with them and 31.5 without. */
static bool allowed(const o3_gemm_t *g, const o3_gemm_schedule_t *s, const o3_gpu_t *gpu) {
  if (s->split > gpu->cluster || (s->split > 1 && g->any_rows)) return false;
  if (s->columns > 64 && s->columns - 64 >= g->n) return false;
  if (s->consumers > 1 && g->m <= O3_GEMM_ROWS) return false;
  if (s->alternate && ((s->columns != 128 && s->columns != 192) || g->element == O3_GPU_TF32)) return false;
  if (s->late_stores && (g->epilogue_computes || o3_gemm_count_tiles(g, s) <= gpu->multiprocessors))
    return false;
  if (s->split > 1 && (s->columns > 64 || count_blocks(g, s) > gpu->multiprocessors)) return false;
  return o3_gemm_refuse_schedule(g, s, (int)gpu->shared_per_block) == NULL;
}

/* Tiles to choose from: warpgroups, products of each, whether they alternate or store late. */
static const struct {
  int consumers, products;
  bool alternate, late_stores;
} SHAPES[] = {{1, 1, false, false}, {2, 1, false, false}, {2, 2, true, false}, {2, 1, false, true}};

static const int COLUMNS[] = {256, 192, 128, 64, 32, 16}, SPLITS[] = {1, 2, 4, 8};

enum {
  NUM_SHAPES = sizeof(SHAPES) / sizeof(SHAPES[0]),
  NUM_COLUMNS = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
  NUM_SPLITS = sizeof(SPLITS) / sizeof(SPLITS[0])
};

static o3_gemm_schedule_t candidate(const o3_gemm_t *gemm, int limit, int number) {
  int shape = number / NUM_SPLITS % NUM_SHAPES;
  o3_gemm_schedule_t s = {.consumers = SHAPES[shape].consumers,
                          .products = SHAPES[shape].products,
                          .alternate = SHAPES[shape].alternate,
                          .late_stores = SHAPES[shape].late_stores,
                          .columns = COLUMNS[number / NUM_SPLITS / NUM_SHAPES],
                          .split = SPLITS[number % NUM_SPLITS],
                          .blocks = 1,
                          .group_rows = 8};
  s.store_by_tensor = o3_gpu_element_info(gemm->out)->bytes == 2 && s.split == 1 && s.columns % 64 == 0;
  s.promote = o3_gpu_element_info(gemm->element)->bytes > 1 ? 0 : s.columns > 192 ? 2 : 1;
  set_stages(gemm, limit, &s);
  return s;
}

/* ---- Few tiles, long k ---- */

/* Microseconds of a step of |blocks| at a time: at the rate of a multiprocessor's tensor cores, or of the L2
 * cache, from which all of them load. */
static double crowded_step(const o3_gemm_schedule_t *s, const o3_gpu_t *gpu, double blocks) {
  static const double L2_BYTES = 12.5e6, TENSOR_CORES = 0.8;
  double flop = 2.0 * o3_gemm_tile_rows(s) * s->columns * O3_GEMM_BLOCK_K;
  double multiply = flop * gpu->multiprocessors / (TENSOR_CORES * gpu->fp16_tflops * 1e6);
  double load = blocks * stage_bytes(s) / L2_BYTES;
  return multiply > load ? multiply : load;
}

/* What the factors take to come from memory. */
static double fetch(const o3_gemm_t *g, const o3_gpu_t *gpu) {
  static const double REACHED = 0.87;
  int64_t elements = (g->m + g->n) * g->k * o3_gemm_batches(g);
  return (double)(elements * o3_gpu_element_info(g->element)->bytes) / (REACHED * gpu->memory_gbps * 1e3);
}

/* Microseconds of products with long k as a cluster shares it, and as |parts| blocks of a tile do through
 * memory; as measured for 18 products of 64 to 1,024 rows with k of 3,072 to 65,536, within 20 % of most.
 * Clusters of many blocks that are to fill the card take nearly two turns; pairs find room everywhere. */
static double share_in_cluster(const o3_gemm_t *g, const o3_gemm_schedule_t *s, const o3_gpu_t *gpu) {
  static const double BEGIN_AND_END = 3.7, STEP = 0.12, CROWDED = 0.8, ALL_CROWDED = 0.1, ROOM = 1.0 / 14;
  double blocks = (double)count_blocks(g, s), step = crowded_step(s, gpu, blocks);
  double beyond = blocks / gpu->multiprocessors - (1 - ROOM * s->split);
  double crowd = beyond <= 0 || s->split == 2 ? 0 : beyond < ALL_CROWDED ? beyond / ALL_CROWDED : 1;
  double steps = (double)ceil_div(o3_gemm_steps(g), s->split) * (step > STEP ? step : STEP);
  steps *= 1 + CROWDED * crowd;
  double least = fetch(g, gpu);
  return BEGIN_AND_END + (steps > least ? steps : least);
}

static double share_in_memory(const o3_gemm_t *g, const o3_gemm_schedule_t *s, const o3_gpu_t *gpu,
                              int parts) {
  static const double BEGIN_AND_END = 3.8, SMALLEST = 16384, MEET = 1.1, PART = 0.15;
  double step = crowded_step(s, gpu, s->streams), least = fetch(g, gpu);
  double steps = (double)ceil_div(o3_gemm_steps(g), parts) * step;
  double size = (double)o3_gemm_tile_rows(s) * s->columns * 4 / SMALLEST;
  return BEGIN_AND_END + size * (MEET + PART * parts) + (steps > least ? steps : least);
}

/* Shares of a tile's steps: 64 x 64 x 65536 takes 11.2 us with 16 of them, 10.7 to 11.0 with 24, 10.8
 * with 32. */
static const int PARTS[] = {2, 4, 8, 16, 24, 32};

enum { NUM_PARTS = sizeof(PARTS) / sizeof(PARTS[0]), BROAD = 64, WIDEST = 128 };

/* |parts| blocks of each tile. Tiles of 64 columns are one panel, which is stored sooner from registers, and
 * 10 stages are enough for them: 64 x 64 x 65536 in 16 parts takes 11.2 us so and 11.8 by TMA with 12,
 * 128 x 128 x 65536 14.2 and 14.8. Tiles of 128 columns gain nothing. */
static o3_gemm_schedule_t streaming(const o3_gemm_t *g, int limit, int number, int parts) {
  enum { ENOUGH_STAGES = 10 };
  o3_gemm_schedule_t s = candidate(g, limit, number);
  int64_t streams = o3_gemm_count_tiles(g, &s) * parts;
  s.streams = streams < INT32_MAX ? (int)streams : INT32_MAX;
  if (s.columns > BROAD) return s;
  s.store_by_tensor = false;
  if (s.stages > ENOUGH_STAGES) s.stages = ENOUGH_STAGES;
  return s;
}

static bool may_stream(const o3_gemm_t *g, const o3_gemm_schedule_t *s, const o3_gpu_t *gpu, int parts) {
  enum { LEAST_STEPS = 4 };
  return s->columns >= BROAD && s->columns <= WIDEST && s->streams <= gpu->multiprocessors &&
         o3_gemm_steps(g) >= LEAST_STEPS * parts &&
         !o3_gemm_refuse_schedule(g, s, (int)gpu->shared_per_block);
}

/* Other clusters than |clustered|, or blocks of a tile that share its k through memory. A gain that is
 * smaller than what is not known of it is none. */
static o3_gemm_schedule_t share_long_k(const o3_gemm_t *g, const o3_gpu_t *gpu,
                                       const o3_gemm_schedule_t *clustered) {
  static const double GAIN = 0.92;
  int limit = (int)gpu->shared_per_block;
  double least = GAIN * share_in_cluster(g, clustered, gpu);
  o3_gemm_schedule_t best = *clustered;
  for (int i = 0; i < NUM_COLUMNS * NUM_SHAPES * NUM_SPLITS; ++i) {
    o3_gemm_schedule_t s = candidate(g, limit, i);
    bool fits = s.split > 1 && s.columns == BROAD && allowed(g, &s, gpu);
    double estimate = fits ? share_in_cluster(g, &s, gpu) : 0;
    if (fits && estimate < least) best = s, least = estimate;
  }
  for (int i = 0; i < NUM_COLUMNS * NUM_SHAPES * NUM_PARTS; ++i) {
    int parts = PARTS[i % NUM_PARTS];
    o3_gemm_schedule_t s = streaming(g, limit, i / NUM_PARTS * NUM_SPLITS, parts);
    bool fits = may_stream(g, &s, gpu, parts);
    double estimate = fits ? share_in_memory(g, &s, gpu, parts) : 0;
    if (fits && estimate < least) best = s, least = estimate;
  }
  return best;
}

static o3_gemm_schedule_t quickest(const o3_gemm_t *gemm, const o3_gpu_t *gpu) {
  o3_gemm_schedule_t best = {0};
  double least = 0;
  for (int i = 0; i < NUM_COLUMNS * NUM_SHAPES * NUM_SPLITS; ++i) {
    o3_gemm_schedule_t s = candidate(gemm, (int)gpu->shared_per_block, i);
    if (!allowed(gemm, &s, gpu)) continue;
    double estimate = cost(gemm, &s, gpu);
    if (best.columns && estimate >= least) continue;
    best = s, least = estimate;
  }
  return best;
}

static bool is_for_long_k(const o3_gemm_t *gemm, const o3_gemm_schedule_t *s) {
  enum { LARGE_CLUSTER = 4 };
  return s->split >= LARGE_CLUSTER && o3_gpu_element_info(gemm->element)->bytes == 2 && !gemm->window;
}

o3_gemm_schedule_t o3_gemm_schedule(const o3_gemm_t *gemm, const o3_gpu_t *gpu) {
  o3_gemm_schedule_t best = quickest(gemm, gpu);
  return is_for_long_k(gemm, &best) ? share_long_k(gemm, gpu, &best) : best;
}

/* ---- Again ---- */

/* Clusters of a long k are compared with clusters, as they are when they are chosen. */
static bool is_nearly(const o3_gemm_t *g, const o3_gemm_schedule_t *s, const o3_gemm_schedule_t *best,
                      const o3_gpu_t *gpu, double *estimate) {
  static const double NEARLY = 1.1;
  bool shares = is_for_long_k(g, best);
  if (!allowed(g, s, gpu) || (shares && s->split == 1)) return false;
  *estimate = shares ? share_in_cluster(g, s, gpu) : cost(g, s, gpu);
  return *estimate <= NEARLY * (shares ? share_in_cluster(g, best, gpu) : cost(g, best, gpu));
}

/* The product of other batches than |g| is for, whose rows it is told. */
static o3_gemm_t of_batches(const o3_gemm_t *g, int batches) {
  o3_gemm_t other = *g;
  other.m = g->rows_of_batch * batches;
  other.any_rows = false;
  return other;
}

/* What the kernels that are made next are best with. */
typedef struct coming {
  int count;
  o3_gemm_t gemms[O3_GEMM_MAX_SCHEDULES];
  o3_gemm_schedule_t best[O3_GEMM_MAX_SCHEDULES];
} coming_t;

static void read_coming(const o3_gemm_t *g, const o3_gpu_t *gpu, const o3_gemm_schedules_t *taken,
                        coming_t *coming) {
  coming->count = g->rows_of_batch ? taken->num_next : 0;
  for (int i = 0; i < coming->count; ++i) {
    coming->gemms[i] = of_batches(g, taken->next[i]);
    coming->best[i] = o3_gemm_schedule(&coming->gemms[i], gpu);
  }
}

/* How many of the next kernels the schedule is nearly the best of, too. */
static int reach(const coming_t *coming, const o3_gemm_schedule_t *s, const o3_gpu_t *gpu) {
  double estimate;
  int count = 0;
  while (count < coming->count && coming->best[count].columns &&
         is_nearly(&coming->gemms[count], s, &coming->best[count], gpu, &estimate))
    ++count;
  return count;
}

/* Of the schedules that are nearly as quick as |best|, the quickest that serves most of the next kernels. */
static o3_gemm_schedule_t farthest(const o3_gemm_t *g, const o3_gpu_t *gpu, const o3_gemm_schedule_t *best,
                                   const o3_gemm_schedules_t *taken) {
  coming_t coming;
  read_coming(g, gpu, taken, &coming);
  o3_gemm_schedule_t chosen = *best;
  int most = reach(&coming, best, gpu);
  double least = 0, estimate;
  for (int i = 0; i < NUM_COLUMNS * NUM_SHAPES * NUM_SPLITS && coming.count; ++i) {
    const o3_gemm_schedule_t s = candidate(g, (int)gpu->shared_per_block, i);
    if (!is_nearly(g, &s, best, gpu, &estimate)) continue;
    int count = reach(&coming, &s, gpu);
    if (count < most || (count == most && (least == 0 || estimate >= least))) continue;
    chosen = s, most = count, least = estimate;
  }
  return chosen;
}

o3_gemm_schedule_t o3_gemm_schedule_again(const o3_gemm_t *gemm, const o3_gpu_t *gpu,
                                          o3_gemm_schedules_t *taken) {
  const o3_gemm_schedule_t best = o3_gemm_schedule(gemm, gpu);
  const o3_gemm_schedule_t *again = NULL;
  double least = 0, estimate;
  if (!best.columns || best.streams) return best;
  for (int i = 0; i < taken->count; ++i) {
    if (!is_nearly(gemm, &taken->items[i], &best, gpu, &estimate) || (again && estimate >= least)) continue;
    again = &taken->items[i], least = estimate;
  }
  if (again) return *again;
  const o3_gemm_schedule_t chosen = farthest(gemm, gpu, &best, taken);
  if (taken->count < O3_GEMM_MAX_SCHEDULES) taken->items[taken->count++] = chosen;
  return chosen;
}
