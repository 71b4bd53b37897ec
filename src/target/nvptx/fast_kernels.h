/* All families of fast kernels, tried in order: fast_kernels.def. */
#ifndef O3_TARGET_NVPTX_FAST_KERNELS_H
#define O3_TARGET_NVPTX_FAST_KERNELS_H

#include "target/nvptx/kernel_site.h"
#include "target/nvptx/open_batch_launch.h"

/* A row of fast_kernels.def. */
typedef struct o3_fast_family {
  const char *name;
  const char *summary;
  int least;       /* compute capability: 90 is 9.0 */
  unsigned matrix; /* instructions that it needs: O3_GPU_WGMMA, ... */
  o3_kernel_make_fn_t make;
} o3_fast_family_t;

/* NULL past the end. */
const o3_fast_family_t *o3_fast_family_at(int index);

/* The kernel of the first family that takes the site, and of a site of one batch, prepared to run for all:
 * |units|, which a site without batches does not need. UNSUPPORTED with each family's reason when none does.
 */
o3_status_t o3_fast_kernel_make(const o3_kernel_site_t *site, o3_gpu_kernel_t *kernel,
                                o3_batch_units_t *units) O3_MUST_USE;

#endif
