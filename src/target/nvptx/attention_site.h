/* Attention among the kernels of the fuse stage: reads what attention_kernel.h describes from linalg ops.
 * That the ops between the products are a softmax the fuse stage has found (fuse/group_attention.h). */
#ifndef O3_TARGET_NVPTX_ATTENTION_SITE_H
#define O3_TARGET_NVPTX_ATTENTION_SITE_H

#include "target/nvptx/kernel_site.h"

/* On warpgroups, on warps: see o3_kernel_make_fn_t. */
o3_status_t o3_attention_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;
o3_status_t o3_attention_mma_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

/* Why no family of |gpu| would take the kernel of these ops, linalg.generic on tensors in order, of which the
 * last gives the result; NULL when it would. |arena|: scratch. */
const char *o3_attention_refuse_ops(o3_arena_t *arena, const struct o3_gpu *gpu, int num_ops,
                                    const MlirOperation *ops);

#endif
