/* Attention on warps (7.0 and up): what attention_kernel.h describes, with mma.sync, for cards without
 * warpgroup products, for rows that start anywhere, and for few rows and many columns. Buffers are numbered
 * as there; all arguments are pointers.
 *
 * A warp has 16 or 32 rows of Q and walks blocks of columns of K and V, which copies (cp.async where there
 * is) bring to shared memory. Rows too few to fill a card are shared: slices, groups of warps, take turns of
 * the blocks, and so may the blocks of threads of a cluster. Each has a softmax of its own columns; at the
 * end they are put together.
 */
#ifndef O3_TARGET_NVPTX_ATTENTION_MMA_H
#define O3_TARGET_NVPTX_ATTENTION_MMA_H

#include "target/nvptx/attention_kernel.h"

typedef struct o3_attention_warps {
  int warps;    /* side by side, each with rows of its own */
  int rows;     /* of a warp: 16 or 32 */
  int columns;  /* of K and V that a warp has at a time: a multiple of 16 up to 256 */
  int slices;   /* groups of warps that share the columns: 1 to 8 */
  int stages;   /* in shared memory: 2 or more with cp.async, else 1 */
  int split;    /* blocks of a cluster that share the columns: 1 to 8 */
  int resident; /* blocks of threads that are to fit on a multiprocessor */
} o3_attention_warps_t;

struct o3_gpu;

/* Whether copies of a card of compute capability |sm| go by cp.async. */
bool o3_gpu_attention_mma_is_async(const o3_gpu_attention_t *attention, int sm);

/* Shared memory of a block of threads. */
int o3_gpu_attention_mma_shared_bytes(const o3_gpu_attention_t *attention, const o3_attention_warps_t *warps,
                                      const struct o3_gpu *gpu);

/* Why there is no such kernel on the card; NULL when there is. Static text. */
const char *o3_gpu_attention_mma_refuse(const o3_gpu_attention_t *attention, const struct o3_gpu *gpu);

/* Whether warps are quicker than the card's warpgroups. */
bool o3_gpu_attention_is_for_warps(const o3_gpu_attention_t *attention, const struct o3_gpu *gpu);

/* The schedule for a card; no columns: none fits into its shared memory. */
o3_attention_warps_t o3_gpu_attention_mma_schedule(const o3_gpu_attention_t *attention,
                                                   const struct o3_gpu *gpu);

/* |attention->schedule| is not read. */
o3_status_t o3_gpu_attention_mma_build(const o3_gpu_attention_t *attention, const o3_attention_warps_t *warps,
                                       const struct o3_gpu *gpu, o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
