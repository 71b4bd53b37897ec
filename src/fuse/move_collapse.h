/* Reshapes that join dimensions of a product's result go behind what is done with it. */
#ifndef O3_FUSE_MOVE_COLLAPSE_H
#define O3_FUSE_MOVE_COLLAPSE_H

#include "ir/pass.h"

/* Elementwise ops of |block| on the joined result of a product take it as it is:
 *
 *     %c = collapse %product [[0], [1, 2]]        %y' = add(%product, expand %r [[0], [1, 2]])
 *     %y = add(%c, %r)                      ->    %y = collapse %y' [[0], [1, 2]]
 */
o3_status_t o3_fuse_move_collapses(o3_arena_t *arena, MlirBlock block) O3_MUST_USE;

#endif
