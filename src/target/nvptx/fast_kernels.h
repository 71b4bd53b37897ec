/* All families of fast kernels, tried in order: fast_kernels.def. */
#ifndef O3_TARGET_NVPTX_FAST_KERNELS_H
#define O3_TARGET_NVPTX_FAST_KERNELS_H

#include "target/nvptx/kernel_site.h"
#include "target/nvptx/open_batch_launch.h"

/* The kernel of the first family that takes the site, and of a site of one batch, prepared to run for all:
 * |units|, which a site without batches does not need. UNSUPPORTED with each family's reason when none does.
 */
o3_status_t o3_fast_kernel_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel,
                                o3_batch_units_t *units) O3_MUST_USE;

#endif
