/* Kernels whose batch is known only at run time, seen as those of one batch.
 *
 * The leading dimensions of a kernel's buffers may be open, and loops of their own in all of its ops:
 *
 *     ?x1x56x56x64 -> ?x1x56x56x256     is for each batch     1x1x56x56x64 -> 1x1x56x56x256
 *
 * With the types of one batch a kernel of known sizes can be made, which runs in one launch for all batches
 * (open_batch_launch.h): its blocks once for each, or told how many rows or batches there are. Where
 * dimensions are joined, a batch is as much of them: of ?x64 that is ?x3136x64, 3136x64.
 */
#ifndef O3_TARGET_NVPTX_OPEN_BATCH_H
#define O3_TARGET_NVPTX_OPEN_BATCH_H

#include "base/arena.h"
#include "ir/ir.h"

struct o3_open_batch_value;
typedef struct o3_open_batch {
  o3_arena_t *arena;
  int num_values, capacity;
  struct o3_open_batch_value *values; /* whose types have changed */
} o3_open_batch_t;

/* Gives the tensors or buffers of |ops|, linalg.generic in order, and of the reshapes between them the types
 * of one batch, until o3_open_batch_end. False, and nothing is changed, when no size is open, or when the
 * open ones are no batches: an op walks them in another way than one by one, sums over them, or computes with
 * their positions. |arena|: scratch. */
bool o3_open_batch_begin(o3_open_batch_t *self, o3_arena_t *arena, int num_ops, const MlirOperation *ops);

/* Elements of a batch of |value|; 0: it is the same for all batches. */
int64_t o3_open_batch_unit(const o3_open_batch_t *self, MlirValue value);

void o3_open_batch_end(o3_open_batch_t *self);

#endif
