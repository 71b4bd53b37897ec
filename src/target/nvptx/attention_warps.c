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
  enum { RESERVED = 1 << 10 };
  int64_t bytes = o3_gpu_attention_mma_shared_bytes(a, p, gpu);
  return bytes <= gpu->shared_per_block && p->resident * (bytes + RESERVED) <= gpu->shared_per_sm;
}

static o3_attention_warps_t of_many_rows(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  int widest = a->width > a->value_width ? a->width : a->value_width;
  bool async = o3_gpu_attention_mma_is_async(a, gpu->sm);
  for (int i = 0; i < NUM_CHOICES; ++i) {
    if (CHOICES[i].width >= widest && CHOICES[i].async == async && fits(a, &CHOICES[i].warps, gpu))
      return CHOICES[i].warps;
  }
  return (o3_attention_warps_t){0};
}

static int64_t blocks_of(const o3_gpu_attention_t *a, const o3_attention_warps_t *p) {
  int rows = p->warps * p->rows;
  return a->batch * a->heads * ((a->rows + rows - 1) / rows) * p->split;
}

/* Blocks of threads of a cluster share the columns while the card has room for more, and each has some
 * stages. */
static int split_of(const o3_gpu_attention_t *a, const o3_attention_warps_t *p, const o3_gpu_t *gpu) {
  enum { CLUSTER_CARDS = 90, MOST = 8, LEAST_STAGES = 4 };
  int most = gpu->sm < CLUSTER_CARDS ? 1 : gpu->cluster < MOST ? gpu->cluster : MOST, split = 1;
  int64_t stages = a->columns / (p->slices * p->columns);
  while (2 * split <= most && 2 * split * blocks_of(a, p) <= gpu->multiprocessors &&
         2 * split * LEAST_STAGES <= stages)
    split *= 2;
  return split;
}

/* Tiles of so few rows that the card would not be full of them: with warps that share columns where a warp
 * has all rows. */
static o3_attention_warps_t of_few_rows(const o3_gpu_attention_t *a, int rows, const o3_gpu_t *gpu) {
  bool async = o3_gpu_attention_mma_is_async(a, gpu->sm), clusters = gpu->cluster > 1;
  int ahead = async ? 3 : 1;
  o3_attention_warps_t p = rows <= 16   ? (o3_attention_warps_t){1, 16, 32, clusters ? 2 : 4, ahead, 1, 1}
                           : rows <= 32 ? (o3_attention_warps_t){2, 16, 32, 2, ahead, 1, 1}
                                        : (o3_attention_warps_t){4, 16, 64, 1, ahead, 1, 1};
  if (!fits(a, &p, gpu) && async) p.stages = 2;
  while (!fits(a, &p, gpu) && p.slices > 1) p.slices /= 2;
  while (!fits(a, &p, gpu) && p.columns > 16) p.columns /= 2;
  while (p.slices > 1 && p.slices * p.columns >= 2 * a->columns) p.slices /= 2;
  p.split = split_of(a, &p, gpu);
  return fits(a, &p, gpu) ? p : (o3_attention_warps_t){0};
}

/* The smallest tiles that are no more than the card has multiprocessors. */
o3_attention_warps_t o3_gpu_attention_mma_schedule(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  static const int ROWS[] = {16, 32, 64};
  for (int i = 0; i < 3; ++i) {
    const o3_attention_warps_t p = of_few_rows(a, ROWS[i], gpu);
    bool whole = a->rows <= ROWS[i],
         wide = i > 0 && a->batch * a->heads * ((a->rows + ROWS[i] - 1) / ROWS[i]) <= gpu->multiprocessors;
    if (p.columns && (whole || wide)) return p;
  }
  return of_many_rows(a, gpu);
}

/* Warpgroups have 128 rows at least, and nobody shares their columns. */
bool o3_gpu_attention_is_for_warps(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  enum { FEW_ROWS = 16, MORE_ROWS = 64, LONG = 512 };
  bool idle = 2 * a->batch * a->heads <= gpu->multiprocessors && a->columns >= LONG && !a->causal;
  return (a->rows <= FEW_ROWS || (a->rows <= MORE_ROWS && idle)) && !o3_gpu_attention_mma_refuse(a, gpu);
}
