/* Conversions of images to channels last (o3.pack_last), 8 channels a thread, which the lowering marks as
 * such. */
#ifndef O3_TARGET_NVPTX_IMAGE_KERNEL_H
#define O3_TARGET_NVPTX_IMAGE_KERNEL_H

#include "target/nvptx/kernel_site.h"

/* See o3_kernel_make_fn_t. */
o3_status_t o3_image_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel, const char **why_not)
    O3_MUST_USE;

#endif
