/* Masks of attention: which op on the scores hides some of them, so that blocks without a seen score are left
 * out. */
#ifndef O3_TARGET_CPU_ATTENTION_MASK_H
#define O3_TARGET_CPU_ATTENTION_MASK_H

#include "target/cpu/gemm_product.h"

typedef struct o3_attention_mask {
  int operand;     /* of the op: i1, or f32 when it is added */
  bool is_added;   /* scores with -inf added are hidden; else those that a constant stands for */
  bool hides_true; /* i1: of what hides a score */
  double hidden;   /* what a hidden score is */
} o3_attention_mask_t;

/* Whether |side|, the last op on |scores|, is a mask whose place is linear in rows and columns. */
bool o3_attention_mask_read(const o3_gemm_product_t *scores, const o3_gemm_side_t *side,
                            o3_attention_mask_t *mask);

/* A block of scores: places of the side's dims at its first score, its size, and for each row the greatest
 * score so far (flat memref). */
typedef struct o3_attention_block {
  const MlirValue *ivs;
  MlirValue rows, columns, greatest;
} o3_attention_block_t;

/* i1: whether the block has a score that counts. The side is flattened; the functions of softmax_text.h are
 * in the module. */
MlirValue o3_attention_mask_build(const o3_gemm_product_t *scores, const o3_gemm_side_t *side,
                                  const o3_attention_mask_t *mask, o3_builder_t *builder,
                                  const o3_attention_block_t *block);

#endif
