/* Pools of images in memory, with the channels last or first: maxima, means and sums of windows of f16, bf16
 * or f32, which the lowering marks as such (target/ref/lower_image.h). */
#ifndef O3_TARGET_NVPTX_POOL_KERNEL_H
#define O3_TARGET_NVPTX_POOL_KERNEL_H

#include "target/nvptx/kernel_site.h"

/* See o3_kernel_make_fn_t. */
o3_status_t o3_pool_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

#endif
