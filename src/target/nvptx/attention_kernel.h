/* Attention on warpgroups (sm_90a): O = softmax(scale Q K^T + mask) V, f16 or bf16, sums and softmax in f32,
 * without the matrix of scores in memory (FlashAttention: Dao et al. 2022, Shah et al. 2024).
 *
 *     Q [batch, heads, rows, width]        K [batch, kv_heads, columns, width]
 *     O [batch, heads, rows, value_width]  V [batch, kv_heads, columns, value_width]
 *
 * in any order of the outer dimensions: each has strides. Buffers: 0 Q, 1 K, 2 V, then the mask, if there is
 * one, O last.
 */
#ifndef O3_TARGET_NVPTX_ATTENTION_KERNEL_H
#define O3_TARGET_NVPTX_ATTENTION_KERNEL_H

#include "target/nvptx/kernel_launch.h"

enum { O3_ATTENTION_ROWS = 64 /* of a warpgroup */, O3_ATTENTION_MAX_WIDTH = 256 };

/* How a kernel is laid out; o3_gpu_attention_schedule chooses. */
typedef struct o3_attention_schedule {
  int consumers;   /* warpgroups that have 64 rows of Q each: 2 to 4 */
  int columns;     /* of a block of K and V: a multiple of 16, with causal cuts of 64 */
  int stages;      /* blocks of K, and of V, in shared memory: 2 or 4 */
  int queries;     /* tiles of Q in shared memory: 1 or 2 */
  int resident;    /* blocks of threads on a multiprocessor: 1 or 2 */
  bool persistent; /* as many blocks of threads as the card has room for, each with several tiles */
  bool ordered;    /* the warpgroups issue their products in turn */
  bool speculates; /* powers are computed before it is known that the references stay */
} o3_attention_schedule_t;

typedef struct o3_attention {
  o3_gpu_element_t element;
  int64_t batch, heads, kv_heads, rows, columns;
  int width, value_width; /* of a head of Q and K, of V and O; up to 256 */
  double scale;           /* positive, unless there is a mask */
  bool causal;            /* row i sees columns up to i; rows == columns */
  /* Elements from a batch, a head, a row to the next. */
  int64_t q_strides[3], k_strides[3], v_strides[3], o_strides[3];
  int64_t offsets[3]; /* elements from the start of a buffer to Q, K, V */
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

/* One row of each of several heads that share keys and values becomes as many rows of one head. */
void o3_gpu_attention_join_rows(o3_gpu_attention_t *attention);

/* Sets |attention->schedule|; all else is set. */
void o3_gpu_attention_schedule(o3_gpu_attention_t *attention);

/* Why no kernel takes what it computes; why warpgroups do not; NULL when they do. Static text. */
const char *o3_gpu_attention_refuse_shape(const o3_gpu_attention_t *attention);
const char *o3_gpu_attention_refuse(const o3_gpu_attention_t *attention);

o3_status_t o3_gpu_attention_build(const o3_gpu_attention_t *attention, o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
