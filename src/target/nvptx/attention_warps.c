/* Chosen as measured on an H200 (docs/design/gpu-kernels.md). */
#include <stddef.h>

#include "schedule/gpu.h"
#include "target/nvptx/attention_mma.h"

typedef struct choice {
  int width;
  bool async;
  o3_attention_warps_t warps;
} choice_t;

static const choice_t CHOICES[] = {
#define O3_ATTENTION_WARPS(width, async, warps, rows, columns, stages, resident) \
  {width, async, {warps, rows, columns, 1, stages, 1, resident}},
#include "target/nvptx/attention_warps.def"
#undef O3_ATTENTION_WARPS
};
enum { NUM_CHOICES = sizeof(CHOICES) / sizeof(CHOICES[0]) };

/* A multiprocessor's room for |resident| blocks of threads. */
static bool fits(const o3_gpu_attention_t *a, const o3_attention_warps_t *p, const o3_gpu_t *gpu) {
  int64_t bytes = o3_gpu_attention_mma_shared_bytes(a, p, gpu);
  return bytes <= gpu->shared_per_block &&
         p->resident * (bytes + O3_GPU_RESERVED_SHARED) <= gpu->shared_per_sm;
}

static int larger(int a, int b) { return a > b ? a : b; }

static o3_attention_warps_t of_many_rows(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  int widest = larger(a->width, a->value_width);
  bool async = o3_gpu_attention_mma_is_async(a, gpu->sm);
  for (int i = 0; i < NUM_CHOICES; ++i) {
    if (CHOICES[i].width >= widest && CHOICES[i].async == async && fits(a, &CHOICES[i].warps, gpu))
      return CHOICES[i].warps;
  }
  return (o3_attention_warps_t){0};
}

/* Tiles of so few rows that cards are not full of larger ones, and how much of a card's multiprocessors the
 * blocks of threads shall be, when those of a cluster share the columns: one warp's rows ask for memory
 * alone, and half of an H200 has its bandwidth. */
typedef struct tile {
  int rows, share; /* 1 / share */
  o3_attention_warps_t warps;
} tile_t;
static const tile_t TILES[] = {
    {16, 2, {1, 16, 32, 4, 3, 1, 1}}, {32, 1, {2, 16, 64, 2, 2, 1, 1}}, {64, 1, {4, 16, 64, 1, 2, 1, 1}}};
enum { WIDE = 128 }; /* sums of wider heads leave few registers for scores */
enum { NUM_TILES = sizeof(TILES) / sizeof(TILES[0]), LONG = 512 /* columns that are worth being shared */ };

static int64_t tiles_of(const o3_gpu_attention_t *a, int rows) {
  return a->batch * a->heads * ((a->rows + rows - 1) / rows);
}

static int split_of(const o3_gpu_attention_t *a, const tile_t *tile, const o3_attention_warps_t *p,
                    const o3_gpu_t *gpu) {
  enum { CLUSTER_CARDS = 90, MOST = 8, LEAST_STAGES = 2 };
  int most = gpu->sm < CLUSTER_CARDS ? 1 : gpu->cluster < MOST ? gpu->cluster : MOST, split = 1;
  int64_t stages = a->columns / (p->slices * p->columns);
  while (2 * split <= most && 2 * split * tiles_of(a, tile->rows) * tile->share <= gpu->multiprocessors &&
         2 * split * LEAST_STAGES <= stages)
    split *= 2;
  return split;
}

static o3_attention_warps_t of_tile(const o3_gpu_attention_t *a, const tile_t *tile, const o3_gpu_t *gpu) {
  o3_attention_warps_t p = tile->warps;
  if (!o3_gpu_attention_mma_is_async(a, gpu->sm)) p.stages = 1;
  if (larger(a->width, a->value_width) > WIDE && p.columns > 32) p.columns = 32;
  while (p.stages > 2 && (!fits(a, &p, gpu) || p.slices * p.columns * (p.stages - 1) >= a->columns))
    --p.stages;
  while (p.slices > 1 && (!fits(a, &p, gpu) || p.slices * p.columns >= 2 * a->columns)) p.slices /= 2;
  while (p.columns > 16 && !fits(a, &p, gpu)) p.columns /= 2;
  p.split = split_of(a, tile, &p, gpu);
  return fits(a, &p, gpu) ? p : (o3_attention_warps_t){0};
}

/* The smallest tiles that are no more than the card has multiprocessors; where columns are many, those of one
 * warp are for what is no more, and clusters do better than tiles that all read them. */
static bool is_good(const o3_gpu_attention_t *a, const tile_t *tile, const o3_gpu_t *gpu) {
  if (a->rows <= tile->rows) return true;
  if (tiles_of(a, tile->rows) > gpu->multiprocessors) return false;
  bool shared = gpu->cluster > 1 || tile->rows == TILES[0].rows;
  return a->columns < LONG || !shared || tile->rows == TILES[NUM_TILES - 1].rows;
}

o3_attention_warps_t o3_gpu_attention_mma_schedule(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  for (int i = 0; i < NUM_TILES; ++i) {
    if (!is_good(a, &TILES[i], gpu)) continue;
    const o3_attention_warps_t p = of_tile(a, &TILES[i], gpu);
    if (p.columns) return p;
  }
  return of_many_rows(a, gpu);
}

/* Warpgroups have 128 rows at least, and nobody shares their columns. */
bool o3_gpu_attention_is_for_warps(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  const int least = TILES[0].rows, most = TILES[NUM_TILES - 1].rows;
  bool few = a->columns < LONG ? tiles_of(a, least) <= gpu->multiprocessors
                               : 2 * tiles_of(a, most) <= gpu->multiprocessors;
  return (a->rows <= least || (few && !a->causal)) && !o3_gpu_attention_mma_refuse(a, gpu);
}
