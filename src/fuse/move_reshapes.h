/* Reshapes between ops move out of their way, so that the ops see one another. */
#ifndef O3_FUSE_MOVE_RESHAPES_H
#define O3_FUSE_MOVE_RESHAPES_H

#include "ir/pass.h"

/* Elementwise ops of |block| take over the joined dimensions of their neighbours:
 *
 *     %b = expand %a [[0], [1, 2]]          %y' = relu(%a, collapse %r)
 *     %y = relu(%b, %r)               ->    %y = expand %y' [[0], [1, 2]]
 *
 * and so do those that only a collapse reads, if nothing that varies along these dimensions is in the way.
 * Inputs that have more or fewer dimensions of size 1 than what they come from are read from there. */
o3_status_t o3_fuse_move_reshapes(o3_arena_t *arena, MlirBlock block) O3_MUST_USE;

#endif
