/* Attention on warpgroups (sm_90a): O = softmax(scale Q K^T + mask) V, f16 or bf16, sums and softmax in f32,
 * without the matrix of scores in memory (FlashAttention: Dao et al. 2022, Shah et al. 2024).
 *
 *     Q, O [batch, heads, rows, width]    K, V [batch, kv_heads, columns, width]
 *
 * in any order of the outer dimensions: each has strides. Buffers: 0 Q, 1 K, 2 V, then the mask, if there is
 * one, O last.
 */
#ifndef O3_TARGET_NVPTX_ATTENTION_KERNEL_H
#define O3_TARGET_NVPTX_ATTENTION_KERNEL_H

#include "target/nvptx/kernel_launch.h"

enum { O3_ATTENTION_ROWS = 64 }; /* of a warpgroup */

/* When the sums move to a larger greatest score of their row. */
typedef enum o3_attention_rescale {
  O3_RESCALE_ALWAYS,
  O3_RESCALE_LAZILY,     /* when a score is more than 2^8 times the reference */
  O3_RESCALE_SPECULATING /* the same; powers are computed before that is known */
} o3_attention_rescale_t;

/* How a kernel is laid out; o3_gpu_attention_schedule chooses. */
typedef struct o3_attention_schedule {
  int consumers;   /* warpgroups that have 64 rows of Q each: 2 to 4 */
  int columns;     /* of a block of K and V: a multiple of 16, with causal cuts of 64 */
  int stages;      /* blocks of K, and of V, in shared memory: 2 or 4 */
  int queries;     /* tiles of Q in shared memory: 1 or 2 */
  int resident;    /* blocks of threads on a multiprocessor: 1 or 2 */
  bool persistent; /* as many blocks of threads as the card has room for, each with several tiles */
  bool ordered;    /* the warpgroups issue their products in turn */
  o3_attention_rescale_t rescale;
  int polynomial; /* of 8 powers, those that the FMA pipes compute */
} o3_attention_schedule_t;

typedef struct o3_attention {
  o3_gpu_element_t element;
  int64_t batch, heads, kv_heads, rows, columns;
  int width;    /* of a head: 64 or 128 */
  double scale; /* positive, unless there is a mask */
  bool causal;  /* row i sees columns up to i; rows == columns */
  /* Elements from a batch, a head, a row to the next. */
  int64_t q_strides[3], k_strides[3], v_strides[3], o_strides[3];
  /* |mask_factor| times it is added to the scaled scores; columns are contiguous, the strides are of batch,
   * head and row (0: the same). */
  bool masked;
  o3_gpu_element_t mask_element;
  double mask_factor;
  /* Or it is of i1, one a byte, and |mask_hidden| takes the place of scores where it is true, or false. */
  bool mask_selects, mask_hides_false;
  double mask_hidden;
  int64_t mask_strides[3];
  int multiprocessors; /* of the card */
  o3_attention_schedule_t schedule;
} o3_gpu_attention_t;

/* Whether there is a kernel for heads so wide. */
bool o3_gpu_attention_has_width(int64_t width);

/* Sets |attention->schedule|; all else is set. */
void o3_gpu_attention_schedule(o3_gpu_attention_t *attention);

/* Why the family does not take it; NULL when it does. Static text. */
const char *o3_gpu_attention_refuse(const o3_gpu_attention_t *attention);

o3_status_t o3_gpu_attention_build(const o3_gpu_attention_t *attention, o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
