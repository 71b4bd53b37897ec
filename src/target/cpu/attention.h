/* Attention kernels: a product, the softmax of its rows, a product. */
#ifndef O3_TARGET_CPU_ATTENTION_H
#define O3_TARGET_CPU_ATTENTION_H

#include "ir/build.h"
#include "ir/pass.h"

/* See o3_kernel_support_t. */
const char *o3_attention_refuse(MlirOperation scores, MlirOperation mixed, int num_sides,
                                const MlirOperation *sides);

/* Writes on the first product how the kernel will be computed (o3.schedule). The ops are linalg.generic on
 * tensors or buffers, in order. */
o3_status_t o3_attention_schedule(o3_pass_env_t *env, int num_ops, const MlirOperation *ops) O3_MUST_USE;

/* Replaces the ops of an attention kernel by loops where the last of them stands; they and the |buffers|,
 * memref.alloc of the kernel's own, are destroyed. The ops are linalg.generic on buffers: the first product,
 * elementwise ops on it, those of the softmax, the second product. */
o3_status_t o3_attention_emit(o3_pass_env_t *env, MlirModule module, int num_ops, const MlirOperation *ops,
                              int num_buffers, const MlirOperation *buffers) O3_MUST_USE;

#endif
