/* Products and convolutions whose warps multiply with the unit of mma_unit.h that the card has: the same as
 * gemm_kernel.h describes, for any sizes and distances of rows, on compute capability 7.0 and later.
 *
 * A block's threads copy a stage of A and B into shared memory, with cp.async several stages ahead where the
 * card has it, else through registers one stage ahead. The warps of a block have parts of its tile of the
 * result; with |slices| groups of them have parts of each stage, and add up in the end. Buffers: 0 is A, 1 is
 * B, then the extra operands, D is the last.
 */
#ifndef O3_TARGET_NVPTX_MMA_KERNEL_H
#define O3_TARGET_NVPTX_MMA_KERNEL_H

#include "target/nvptx/gemm_kernel.h"
#include "target/nvptx/mma_unit.h"

/* What a kernel is made for. */
typedef struct o3_mma_card {
  int sm; /* compute capability: 80 is 8.0 */
  int multiprocessors, shared_bytes;
} o3_mma_card_t;

typedef struct o3_mma_schedule {
  int warps[2];   /* of a slice, along rows and columns */
  int pieces[2];  /* of the unit's that a warp has */
  int slices;     /* 1, 2, 4, 8: at most the unit's steps of a stage */
  int line_bytes; /* of k a stage: 64 or 128 */
  int stages;     /* 2 without cp.async */
  int blocks;     /* that are to fit on a multiprocessor */
  int group_rows; /* tiles of rows that are visited before the next tile of columns */
  bool staged;    /* D goes through shared memory: halves, in rows of multiples of 16 bytes */
} o3_mma_schedule_t;

/* Why there is no kernel for the product; NULL when there is. Static text. */
const char *o3_mma_refuse(const o3_gemm_t *gemm, int sm);

/* Whether copies go by cp.async. */
bool o3_mma_is_async(const o3_gemm_t *gemm, int sm);

/* Shared memory of a block. */
int o3_mma_shared_bytes(const o3_gemm_t *gemm, const o3_mma_unit_t *unit, const o3_mma_schedule_t *schedule);

o3_mma_schedule_t o3_mma_schedule(const o3_gemm_t *gemm, const o3_mma_card_t *card);

/* Why no kernel can be built by the schedule; NULL when one can. Static text. */
const char *o3_mma_refuse_schedule(const o3_gemm_t *gemm, const o3_mma_schedule_t *schedule,
                                   const o3_mma_card_t *card);

o3_status_t o3_mma_build(const o3_gemm_t *gemm, const o3_mma_schedule_t *schedule, const o3_mma_card_t *card,
                         o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
