/* Kernels as the fuse stage leaves them: what they tell of themselves, from where they are called, and copies
 * of what they are made of. */
#ifndef O3_FUSE_KERNEL_BODY_H
#define O3_FUSE_KERNEL_BODY_H

#include "base/map.h"
#include "ir/pass.h"

/* Attributes of a kernel, a private function. */
#define O3_KERNEL_KIND    "o3.kernel_kind" /* string: group_kinds.def */
#define O3_KERNEL_NODES   "o3.nodes"       /* strings: names of the model's nodes, in order */
#define O3_KERNEL_REASONS "o3.reasons"     /* strings: why each of the ops is in the kernel */
#define O3_KERNEL_STOP    "o3.stop"        /* string: why it ends where it does */
#define O3_KERNEL_ROWS    "o3.rows"        /* i64s: the dimensions of the result that count the rows */

/* The kernels of |module| by name, each a MlirOperation.ptr. The list does not follow changes of the module.
 */
o3_status_t o3_fuse_list_kernels(o3_arena_t *arena, MlirModule module, o3_str_map_t **kernels) O3_MUST_USE;

/* That of |kernels| which |op| of @main calls, in the fuse stage and after it; a null op for other calls and
 * ops. */
MlirOperation o3_fuse_called_kernel(const o3_str_map_t *kernels, MlirOperation op);

/* Copies all ops of |kernel| but the return into |block|, before |before| or, when that is null, to its end.
 * |values| has what stands for the kernel's arguments, by MlirValue.ptr, and gets what stands for the ops'
 * results; |result| is what stands for what the kernel returns. */
o3_status_t o3_fuse_copy_body(MlirOperation kernel, MlirBlock block, MlirOperation before,
                              o3_ptr_map_t *values, MlirValue *result) O3_MUST_USE;

/* Notes that |to| stands for |from|. */
o3_status_t o3_fuse_map_value(o3_ptr_map_t *values, MlirValue from, MlirValue to) O3_MUST_USE;

#endif
