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
  int64_t mask_strides[3];
} o3_gpu_attention_t;

/* Whether there is a kernel for heads so wide. */
bool o3_gpu_attention_has_width(int64_t width);

/* Why the family does not take it; NULL when it does. Static text. */
const char *o3_gpu_attention_refuse(const o3_gpu_attention_t *attention);

o3_status_t o3_gpu_attention_build(const o3_gpu_attention_t *attention, o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
