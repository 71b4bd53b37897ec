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
enum { FEW_ROWS = 16 }; /* a warp has no fewer */
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

/* Blocks of threads of a cluster share the columns while the card has room for more, and each has some
 * stages. */
static int split_of(const o3_gpu_attention_t *a, const o3_attention_warps_t *p, const o3_gpu_t *gpu) {
  enum { CLUSTER_CARDS = 90, MOST = 8, LEAST_STAGES = 4 };
  int64_t planes = a->batch * a->heads, stages = a->columns / (p->slices * p->columns);
  int most = gpu->sm >= CLUSTER_CARDS ? gpu->cluster : 1, split = 1;
  while (2 * split <= most && 2 * split <= MOST && 2 * split * planes <= gpu->multiprocessors &&
         2 * split * LEAST_STAGES <= stages)
    split *= 2;
  return split;
}

/* All rows are of one warp, which others help with the columns. */
static o3_attention_warps_t of_few_rows(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  bool async = o3_gpu_attention_mma_is_async(a, gpu->sm);
  o3_attention_warps_t p = {1, FEW_ROWS, 32, 4, async ? 2 : 1, 1, 1};
  while (p.slices > 1 && (!fits(a, &p, gpu) || p.slices * p.columns >= 2 * a->columns)) p.slices /= 2;
  p.split = split_of(a, &p, gpu);
  return p;
}

o3_attention_warps_t o3_gpu_attention_mma_schedule(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  return a->rows <= FEW_ROWS ? of_few_rows(a, gpu) : of_many_rows(a, gpu);
}

bool o3_gpu_attention_is_for_warps(const o3_gpu_attention_t *a, const o3_gpu_t *gpu) {
  return a->rows <= FEW_ROWS && !o3_gpu_attention_mma_refuse(a, gpu);
}
