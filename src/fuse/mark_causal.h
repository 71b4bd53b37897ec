/* Masks that are computed from positions and hide what is above the diagonal. */
#ifndef O3_FUSE_MARK_CAUSAL_H
#define O3_FUSE_MARK_CAUSAL_H

#include "ir/pass.h"

/* On an op with one input of i1: the position of its rows, that of its columns. */
#define O3_UP_TO_DIAGONAL "o3.up_to_diagonal"

/* Marks ops of |block| that read such a mask, whose elements are true where the column is not behind the row:
 *
 *     %m = map { index 1 <= index 0 }        %y = map(%m, %x) { select } {o3.up_to_diagonal = [0, 1]}
 */
void o3_fuse_mark_causal(MlirBlock block);

#endif
