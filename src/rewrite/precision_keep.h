/* What --precision must not narrow. */
#ifndef O3_REWRITE_PRECISION_KEEP_H
#define O3_REWRITE_PRECISION_KEEP_H

#include "base/map.h"
#include "ir/pass.h"
#include "rewrite/rewrite_ir.h"

/* Which way ops are treated, of precision_ops.def. */
typedef enum o3_precision_kind {
  O3_PRECISION_OTHER,
  O3_PRECISION_PRODUCT,
  O3_PRECISION_MOVE,
  O3_PRECISION_CARRY,
  O3_PRECISION_EXACT,
  O3_PRECISION_SENSITIVE
} o3_precision_kind_t;
o3_precision_kind_t o3_precision_kind(MlirOperation op);

/* Of |ops|, @main's in their order, those that stay in f32 with their results, as keys of *kept (in |env|'s
 * arena):
 * - what makes angles of sines, and numbers that become integers: elementwise ops and moves, and products of
 *   positions (of integers and constants alone, as of rotary embeddings);
 * - what carries a constant beyond the narrow type's range, such as the lowest float of a mask: as an
 * infinity it would make NaN of a row that is masked as a whole. */
o3_status_t o3_precision_find_kept(o3_pass_env_t *env, const o3_ptr_vec_t *ops, MlirType narrow,
                                   o3_ptr_map_t **kept) O3_MUST_USE;

#endif
