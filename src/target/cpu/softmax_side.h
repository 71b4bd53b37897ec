/* The last op on a row of attention's scores, with vectors, and the row's greatest score from it. */
#ifndef O3_TARGET_CPU_SOFTMAX_SIDE_H
#define O3_TARGET_CPU_SOFTMAX_SIDE_H

#include "target/cpu/gemm_product.h"

/* Whether |op| on the scores is arithmetic on f32 that is contiguous along the keys or the same for all. */
bool o3_softmax_side_fits(const o3_gemm_product_t *scores, const o3_gemm_side_t *op);

typedef struct o3_softmax_side_row {
  int lanes;
  const MlirValue *ivs;      /* of the op's dims; the keys' is overwritten */
  MlirValue lower, upper;    /* keys */
  MlirValue greatest, place; /* flat memref and index: where the greatest score goes, -inf without one; NaNs
                                do not count */
} o3_softmax_side_row_t;

/* Builds it; the op's operands are flattened. */
o3_status_t o3_softmax_side_build(const o3_gemm_product_t *scores, const o3_gemm_side_t *op,
                                  o3_builder_t *builder, const o3_softmax_side_row_t *row) O3_MUST_USE;

#endif
