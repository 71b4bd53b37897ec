/* What products on blocked layouts share. */
#ifndef O3_TARGET_REF_LOWER_BLOCKED_H
#define O3_TARGET_REF_LOWER_BLOCKED_H

#include "target/ref/window.h"

/* N x blocks x OH x OW x lanes of |shape|, full of |bias| (blocks x lanes) or, when that is null, zeros.
 * Without lanes, here and below: a plain image, channels instead of blocks. */
MlirValue o3_lw_blocked_start(o3_lw_t *lw, MlirOperation op, const o3_shape_t *shape, MlirValue bias);

/* |x|, N x blocks x H x W x lanes, with the window's border of zeros; |x| itself where it has none. */
MlirValue o3_lw_blocked_border(o3_lw_t *lw, MlirValue x, const o3_shape_t *shape,
                               const o3_lw_window_t *window);

/* |x| of shape |from| within zeros of shape |to|, the window's lows before it; |to| may also cut some of it
 * off. */
MlirValue o3_lw_blocked_surround(o3_lw_t *lw, MlirValue x, const o3_shape_t *from, const o3_shape_t *to,
                                 const o3_lw_window_t *window);

/* Hands the numbers of |op|'s channels, where its last blocks are not full, to the generic that makes
 * |product|: o3.channels = inputs (0: in full blocks), outputs. */
void o3_lw_blocked_channels(MlirOperation op, MlirValue product);

#endif
