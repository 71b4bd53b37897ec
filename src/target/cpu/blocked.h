/* Products whose weights have 16 lanes innermost: convolutions in channel blocks, depthwise ones, matrix
 * products with packed weights. They run on the register tiles of tile_text.h. */
#ifndef O3_TARGET_CPU_BLOCKED_H
#define O3_TARGET_CPU_BLOCKED_H

#include "target/cpu/product.h"

/* Whether |op|, on tensors or buffers, is such a product. */
bool o3_blocked_takes(MlirOperation op);
/* Whether |op|, one that is taken, is emitted only together with what its sums start at. */
bool o3_blocked_needs_start(MlirOperation op);
/* Why |op|, which computes each element of the product's result from itself and others, cannot follow. */
const char *o3_blocked_refuse_epilogue(MlirOperation product, MlirOperation op);
/* Why the border that |padding| puts around the product's first input has to be in memory. */
const char *o3_blocked_refuse_padding(MlirOperation product, MlirOperation padding);
/* As o3_product_schedule, for a product that o3_blocked_takes. */
o3_status_t o3_blocked_schedule(o3_pass_env_t *env, MlirOperation product, MlirOperation padding) O3_MUST_USE;
/* As o3_product_emit, which calls it, for a product that o3_blocked_takes; the ops stay. */
o3_status_t o3_blocked_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel)
    O3_MUST_USE;

#endif
