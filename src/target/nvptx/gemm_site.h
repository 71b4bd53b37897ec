/* Matrix products and convolutions among the kernels of the fuse stage: reads what gemm_kernel.h describes
 * from linalg ops. */
#ifndef O3_TARGET_NVPTX_GEMM_SITE_H
#define O3_TARGET_NVPTX_GEMM_SITE_H

#include "target/cpu/nest.h"
#include "target/nvptx/kernel_site.h"

/* See o3_kernel_make_fn_t. */
o3_status_t o3_gemm_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

/* The same for products of few rows (gemv_kernel.h). */
o3_status_t o3_gemv_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

/* The same by warps (mma_kernel.h), where warpgroups do not multiply. */
o3_status_t o3_mma_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

/* Depthwise convolutions, which are read in the same way. See o3_kernel_make_fn_t. */
o3_status_t o3_depthwise_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

/* Whether the body of a nest with two inputs is so_far + extf(a) * extf(b), in any order. */
bool o3_gemm_multiplies_halves(const o3_nest_t *nest);

/* Why no family of |gpu| would take the kernel of these ops, linalg.generic on tensors in order, of which the
 * last gives the result; NULL when one would. |arena|: scratch. */
const char *o3_gemm_refuse_ops(o3_arena_t *arena, const struct o3_gpu *gpu, int num_ops,
                               const MlirOperation *ops);

/* Why none would do without |padding|, the op on tensors that gives |product| its first factor;
 * NULL when it reads the image without a border. */
const char *o3_gemm_refuse_padding(o3_arena_t *arena, const struct o3_gpu *gpu, MlirOperation product,
                                   MlirOperation padding);

#endif
