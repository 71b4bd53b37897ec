/* Inside a kernel: fewer ops and fewer values. */
#ifndef O3_FUSE_MERGE_H
#define O3_FUSE_MERGE_H

#include "analysis/dependence.h"
#include "ir/pass.h"

/* Whether |consumer|, the only reader of the elementwise |producer|, may compute what it reads itself: one
 * element of the producer for each iteration, or cheap ones. */
bool o3_fuse_merges(const o3_dep_generic_t *producer, const o3_dep_generic_t *consumer);

/* Merges elementwise ops of |block| into the op that reads them, where that computes nothing twice (or only
 * what is cheap), and constants of one value into the bodies. */
o3_status_t o3_fuse_merge(o3_arena_t *arena, MlirBlock block) O3_MUST_USE;

/* Lets the op that makes |root|, and those before it, write into |out|, a tensor of the same type:
 *
 *     %e = exp(%x) outs(%empty)    ->    %e = exp(%x) outs(%out)
 *     %y = div(%e, %s) outs(%empty)      %y = div(%s) outs(%e)     the body reads the old value
 */
o3_status_t o3_fuse_place(o3_arena_t *arena, MlirValue root, MlirValue out) O3_MUST_USE;

/* Where the op that was to be overwritten has been folded away since, the value overwritten is the kernel's
 * own argument: it is read instead, and the last argument, for the result, written. */
o3_status_t o3_fuse_spare_arguments(o3_arena_t *arena, MlirBlock body) O3_MUST_USE;

#endif
