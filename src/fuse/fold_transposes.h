/* Transpositions become part of the products that read or make what they move. */
#ifndef O3_FUSE_FOLD_TRANSPOSES_H
#define O3_FUSE_FOLD_TRANSPOSES_H

#include "ir/pass.h"

/* Names of the nodes whose transposition a product does: string arrays on it. */
#define O3_READS_TRANSPOSED  "o3.reads_transposed"
#define O3_WRITES_TRANSPOSED "o3.writes_transposed"

/* Products of |block| read through the access map of a transposition what it reads, and write through it what
 * only it reads:
 *
 *     %t = transpose %k                 %y = product(%q, %k)    with k's map transposed
 *     %p = product(%q, %t)        ->
 *     %y = transpose %p                                         and the result's
 *
 * where |machine|'s product still takes it: rows of the left operand stay contiguous along the sum, the
 * result along its columns. */
o3_status_t o3_fuse_fold_transposes(o3_arena_t *arena, MlirBlock block, const o3_machine_t *machine)
    O3_MUST_USE;

#endif
