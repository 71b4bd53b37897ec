/* Kernels of columns: reductions along dimensions that are not the last ones, and elementwise ops between,
 * before and behind them (softmax and normalizations over the channels of an image whose channels come
 * first).
 *
 * Neighbouring threads have neighbouring columns, and threads of a block share the elements of each: an
 * element lies in a register from the load to the store.
 */
#ifndef O3_TARGET_NVPTX_COLUMN_KERNEL_H
#define O3_TARGET_NVPTX_COLUMN_KERNEL_H

#include "target/nvptx/kernel_site.h"

/* See o3_kernel_make_fn_t. */
o3_status_t o3_column_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

/* Why the family would not take a kernel of these ops, linalg.generic on tensors in order, of which the last
 * gives the result; NULL when it would. */
const char *o3_column_refuse_ops(o3_arena_t *arena, const struct o3_gpu *gpu, int num_ops,
                                 const MlirOperation *ops);

#endif
