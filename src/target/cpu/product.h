/* Products and convolutions with what is done to each finished element: the contraction kernels of the fuse
 * stage. */
#ifndef O3_TARGET_CPU_PRODUCT_H
#define O3_TARGET_CPU_PRODUCT_H

#include "ir/build.h"
#include "ir/pass.h"
#include "target/cpu/nest.h"

/* Whether the body is out + a * b, operands in any order. */
bool o3_product_is_multiply_add(const o3_nest_t *nest);

/* See o3_kernel_support_t. */
const char *o3_product_refuse(MlirOperation product);
const char *o3_product_refuse_epilogue(MlirOperation product, MlirOperation op);
const char *o3_product_refuse_padding(const struct o3_gpu *gpu, MlirOperation product, MlirOperation op);

/* The ops of a contraction kernel, on buffers: all but the padding write the same one. */
typedef struct o3_product_kernel {
  MlirOperation product;
  MlirOperation padding; /* would make the first input, of which there is none then; null without one */
  int num_before, num_after;
  MlirOperation before[4]; /* what the sums start at */
  MlirOperation after[4];  /* what is done with each sum */
} o3_product_kernel_t;

/* Where their loops go: before the last of them. */
o3_builder_t o3_product_builder(const o3_product_kernel_t *kernel);

/* An error of the compiler: the fuse stage put |op| into the kernel of a product. */
o3_status_t o3_product_cannot_take(MlirOperation op, const char *why) O3_MUST_USE;

/* Writes on |product|, of a contraction kernel on tensors or buffers, how it will be computed (o3.schedule);
 * |padding| as in o3_product_kernel_t. Leaves alone what is no such product. */
o3_status_t o3_product_schedule(o3_pass_env_t *env, MlirOperation product, MlirOperation padding) O3_MUST_USE;

/* Replaces the ops by loops where the last of them stands; they are destroyed. */
o3_status_t o3_product_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel)
    O3_MUST_USE;

#endif
