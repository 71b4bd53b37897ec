/* Products whose weights have 16 lanes innermost: convolutions in channel blocks, depthwise ones, matrix
 * products with packed weights. They run on the register tiles of tile_text.h. */
#ifndef O3_TARGET_CPU_BLOCKED_H
#define O3_TARGET_CPU_BLOCKED_H

#include "target/cpu/blocked_match.h"
#include "target/cpu/product.h"

/* Whether |op|, on tensors or buffers, is such a product. */
bool o3_blocked_takes(MlirOperation op);
/* Whether |op|, one that is taken, is emitted only together with what its sums start at. */
bool o3_blocked_needs_start(MlirOperation op);
/* Why |op|, which computes each element of the product's result from itself and others, cannot follow. */
const char *o3_blocked_refuse_epilogue(MlirOperation product, MlirOperation op);
/* Why the border that |padding| puts around the product's first input has to be in memory. */
const char *o3_blocked_refuse_padding(MlirOperation product, MlirOperation padding);
/* A product of a chain (blocked_chain.h); all zero: one that is alone in its kernel. */
typedef struct o3_blocked_part {
  MlirValue moved;    /* the image between the products, which is in memory a few rows at a time only */
  int64_t row_length; /* of the first product's result, or 0 */
  int64_t chain_rows; /* of the second product's result at a time, or 0 */
} o3_blocked_part_t;
enum { O3_BLOCKED_BLOCKS = 1 }; /* the dimension of images that counts blocks */

/* As o3_product_schedule, for a product that o3_blocked_takes. */
o3_status_t o3_blocked_schedule(o3_pass_env_t *env, MlirOperation product, MlirOperation padding,
                                const o3_blocked_part_t *part) O3_MUST_USE;
/* As o3_product_emit, which calls it, for a product that o3_blocked_takes; the ops stay. */
o3_status_t o3_blocked_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel)
    O3_MUST_USE;

/* ---- Row by row, for blocked_chain.c ---- */

typedef struct o3_blocked_emitter o3_blocked_emitter_t;

/* Why |product|'s result cannot be in memory for a row at a time: an op around it needs more than registers.
 */
const char *o3_blocked_refuse_part(const o3_blocked_t *product, const o3_product_kernel_t *kernel);
/* Reads the kernel's ops; what is the same for all rows is built at |builder|. Lives in the arena. */
o3_status_t o3_blocked_open(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel,
                            const o3_blocked_part_t *part, o3_builder_t *builder,
                            o3_blocked_emitter_t **emitter) O3_MUST_USE;
/* From now on the part's image is one block in |memory| (flat), whose row 0 is, or would be, at |row0|. */
void o3_blocked_move(o3_blocked_emitter_t *emitter, o3_builder_t *builder, const o3_blocked_part_t *part,
                     MlirValue memory, MlirValue row0);
/* Builds all that makes one row of one block of the result. */
o3_status_t o3_blocked_build_row(o3_blocked_emitter_t *emitter, o3_builder_t *builder, MlirValue row,
                                 MlirValue block) O3_MUST_USE;

#endif
