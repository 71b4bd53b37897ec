/* Products of few rows: D = epilogue(A B) as gemm_kernel.h says, of at most O3_GEMV_MAX_ROWS rows, where B is
 * streamed from memory once and every sum is made in f32 by ordinary arithmetic. f16, bf16 and f32, on all
 * cards from compute capability 7.0 on.
 *
 * Buffers are numbered as those of a product: 0 is A, 1 is B, then the extra operands, D is the last. */
#ifndef O3_TARGET_NVPTX_GEMV_KERNEL_H
#define O3_TARGET_NVPTX_GEMV_KERNEL_H

#include "schedule/gpu.h"
#include "target/nvptx/gemm_kernel.h"

enum { O3_GEMV_MAX_ROWS = 8 };

/* Threads load vectors of |vector| elements of B. By rows of B, |lanes| of a warp lie side by side along the
 * columns, its other lanes and all warps of the block take |depth| rows of k each at a time. By columns of B,
 * all lanes lie along k, a warp has |columns| columns, |depth| vectors of each at a time, and |sharing| warps
 * of the block share these. */
typedef struct o3_gemv_schedule {
  int warps, lanes, columns, depth, sharing, vector;
} o3_gemv_schedule_t;

/* Why the family does not take the product; NULL when it does. Static text. */
const char *o3_gemv_refuse(const o3_gemm_t *gemm);

o3_gemv_schedule_t o3_gemv_schedule(const o3_gemm_t *gemm, const o3_gpu_t *gpu);

/* Why no kernel can be built by the schedule; NULL when one can. Static text. */
const char *o3_gemv_refuse_schedule(const o3_gemm_t *gemm, const o3_gemv_schedule_t *schedule,
                                    const o3_gpu_t *gpu);

o3_status_t o3_gemv_build(const o3_gemm_t *gemm, const o3_gemv_schedule_t *schedule, bool overlaps,
                          o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
