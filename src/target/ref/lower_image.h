/* Images that ops read in place, elements computed one by one from what they load: of a border nothing is
 * made. Such ops are marked, with taps, steps, dilations and lows of their windows along y and x, for kernels
 * of their own; pools also with what they are (o3_pool_kind_t) and the first and the end of the
 * positions along y and x that means are over:
 *
 *     o3.kernel = "pool", o3.window = array<i64: 3, 3, 2, 2, 1, 1, 1, 1>, o3.pool = array<i64: 1, 0, 0, 56,
 * 56>
 */
#ifndef O3_TARGET_REF_LOWER_IMAGE_H
#define O3_TARGET_REF_LOWER_IMAGE_H

#include "target/ref/lowering.h"

/* Kinds of pools, and the most taps of their windows. */
typedef enum o3_pool_kind { O3_POOL_MAXIMA, O3_POOL_MEANS, O3_POOL_SUMS } o3_pool_kind_t;
enum { O3_POOL_MAX_TAPS = 25 };

/* Lowers max_pool or avg_pool with |x| to such an op: two dimensions of floats (and perhaps channels behind
 * them), of known sizes and small windows, for targets that have kernels for it. False: it is none of these,
 * and nothing is built. */
bool o3_lw_pool_in_place(o3_lw_t *lw, MlirOperation op, MlirValue x, MlirValue *y);

#endif
