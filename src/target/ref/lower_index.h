/* Indices that come from tensors: counted from the end when negative, checked once before the loop that uses
 * them, and clamped inside of it. */
#ifndef O3_TARGET_REF_LOWER_INDEX_H
#define O3_TARGET_REF_LOWER_INDEX_H

#include "target/ref/lowering.h"

/* Ends the run unless all numbers of operand |operand| (the tensor |indices|) lie in -size <= i < size. With
 * one size it holds for all; with more, sizes[k] is for those at position k of the last dimension. Nothing is
 * built for constants that are seen to fit. */
void o3_lw_check_indices(o3_lw_t *lw, MlirOperation op, int operand, MlirValue indices, int num_sizes,
                         const MlirAffineExpr *sizes);

/* Inside of a body or loop: the index value of |number| (any integer) for a dimension of |size|. */
MlirValue o3_lw_wrap_index(o3_builder_t *builder, MlirValue number, MlirValue size);

#endif
