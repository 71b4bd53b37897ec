/* Chains: a product in channel blocks and the depthwise convolution that reads it, in one kernel (kind
 * "chain" of the fuse stage). A few rows of the image between them are in memory at a time. */
#ifndef O3_TARGET_CPU_BLOCKED_CHAIN_H
#define O3_TARGET_CPU_BLOCKED_CHAIN_H

#include "ir/build.h"
#include "ir/pass.h"

/* |ops| are the kernel's linalg.generic ops, in order, on tensors or buffers. */

/* See o3_kernel_support_t. */
const char *o3_chain_refuse(const o3_machine_t *machine, int count, const MlirOperation *ops);
/* Writes on both products how they will be computed (o3.schedule). */
o3_status_t o3_chain_schedule(o3_pass_env_t *env, int count, const MlirOperation *ops) O3_MUST_USE;
/* How many floats of memory the kernel needs beside its result. */
o3_status_t o3_chain_scratch(const o3_machine_t *machine, int count, const MlirOperation *ops,
                             int64_t *floats) O3_MUST_USE;
/* Builds the loops before the last op; |scratch| is a memref of that many floats. The ops, whose buffers
 * beside the result are not used, stay for the caller to destroy. */
o3_status_t o3_chain_emit(o3_pass_env_t *env, MlirModule module, int count, const MlirOperation *ops,
                          MlirValue scratch) O3_MUST_USE;

#endif
