/* Winograd convolutions, as target/ref/lower_winograd.c builds them, in one kernel. */
#ifndef O3_TARGET_CPU_WINOGRAD_KERNEL_H
#define O3_TARGET_CPU_WINOGRAD_KERNEL_H

#include "ir/build.h"
#include "ir/pass.h"

/* See o3_kernel_support_t. */
int o3_winograd_members(MlirOperation output, MlirOperation members[O3_KERNEL_MAX_CHAIN]);
/* Whether |op|, on tensors or buffers, is the output transform of such a convolution. */
bool o3_winograd_takes(MlirOperation op);
/* Why |op|, which computes each element of the result from itself and others, cannot follow; or NULL. */
const char *o3_winograd_refuse_epilogue(MlirOperation output, MlirOperation op);

enum { O3_WINOGRAD_MAX_SIDES = 4 };
/* The ops of a kernel, on buffers. */
typedef struct o3_winograd_kernel {
  MlirOperation border; /* writes the input with zeros around it; null when the input is read as it is */
  MlirOperation input, product, output;
  int num_before, num_after;
  MlirOperation before[O3_WINOGRAD_MAX_SIDES]; /* write what the sums start at */
  MlirOperation after[O3_WINOGRAD_MAX_SIDES];  /* on the finished result */
} o3_winograd_kernel_t;

/* Sorts the generics of a kernel's body, in order, by what they are; false when they are no such kernel. */
bool o3_winograd_read(int count, const MlirOperation *ops, o3_winograd_kernel_t *kernel);

/* Writes on |product|, the op marked "winograd_product", how it will be computed (o3.schedule). */
o3_status_t o3_winograd_schedule(o3_pass_env_t *env, MlirOperation product) O3_MUST_USE;

/* How many floats of memory the kernel needs beside its result. */
o3_status_t o3_winograd_scratch(const o3_machine_t *machine, const o3_winograd_kernel_t *kernel,
                                int64_t *floats) O3_MUST_USE;

/* Builds the kernel's loops before its last op; |scratch| is a memref of that many floats. The kernel's ops
 * stay, for the caller to destroy. */
o3_status_t o3_winograd_emit(o3_pass_env_t *env, MlirModule module, const o3_winograd_kernel_t *kernel,
                             MlirValue scratch) O3_MUST_USE;

#endif
