/* Kernels of rows: reductions along the last dimensions of a tensor and elementwise ops between, before and
 * behind them (LayerNorm, RMSNorm, softmax, with what is fused to them).
 *
 * A row belongs to a warp or to a block, and lies in its registers from the first load to the store: each
 * input is read once, 16 bytes a thread at a time.
 */
#ifndef O3_TARGET_NVPTX_ROW_KERNEL_H
#define O3_TARGET_NVPTX_ROW_KERNEL_H

#include "target/nvptx/kernel_site.h"

/* See o3_kernel_make_fn_t. */
o3_status_t o3_row_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

#endif
