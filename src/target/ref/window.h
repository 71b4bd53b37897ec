/* Windows over the spatial dimensions of N C spatial... tensors, as the lowering of convolutions and pools
 * needs them. */
#ifndef O3_TARGET_REF_WINDOW_H
#define O3_TARGET_REF_WINDOW_H

#include "target/ref/lowering.h"

typedef struct o3_lw_window {
  int rank;                       /* spatial */
  int64_t kernel[O3_IR_MAX_RANK]; /* pools only */
  int64_t strides[O3_IR_MAX_RANK], dilations[O3_IR_MAX_RANK];
  int64_t lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK];
} o3_lw_window_t;

/* From the op's attributes kernel, strides, dilations, pads. */
void o3_lw_window_read(MlirOperation op, o3_lw_window_t *window);

/* The tensor |x| of |shape| inside a larger one full of the scalar |fill|: lows and highs elements around
 * each dimension, not negative, and gaps of steps[i] - 1 between neighbours. |shape| becomes the larger one.
 */
typedef struct o3_lw_spread {
  int64_t lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK], steps[O3_IR_MAX_RANK];
} o3_lw_spread_t;
MlirValue o3_lw_spread(o3_lw_t *lw, MlirValue x, const o3_lw_spread_t *spread, MlirValue fill,
                       o3_shape_t *shape);

/* Splits dimension |dim| of |shape| into |outer| and the rest, or joins |dim| and the next into one; |shape|
 * follows. |outer| must divide. */
MlirValue o3_lw_split_dim(o3_lw_t *lw, MlirValue x, int dim, int64_t outer, o3_shape_t *shape);
MlirValue o3_lw_join_dims(o3_lw_t *lw, MlirValue x, int dim, o3_shape_t *shape);
/* Splits the last dimension |dim| of |x| into the dimensions dim... of |shape|, which has the others too. */
MlirValue o3_lw_unjoin_dims(o3_lw_t *lw, MlirValue x, int dim, const o3_shape_t *shape);

/* The type in which sums of |element| (old type) are kept: f32 for f16 and bf16, else the same. */
MlirType o3_lw_sum_element(MlirType element);
/* |x| of |shape| converted from the old type |from| to |to|, element by element; |x| itself when they are
 * equal. */
MlirValue o3_lw_convert_all(o3_lw_t *lw, MlirValue x, const o3_shape_t *shape, MlirType from, MlirType to);

#endif
