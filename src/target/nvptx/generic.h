/* Generic kernels: what no family of fast kernels takes. Each becomes a gpu.launch before the ops, which are
 * destroyed.
 *
 *   a thread an element   its sums, and what is done with them, one after another in the thread
 *   a block a row         threads share a row's elements and sums; values of a row lie in shared memory
 */
#ifndef O3_TARGET_NVPTX_GENERIC_H
#define O3_TARGET_NVPTX_GENERIC_H

#include "schedule/gpu.h"
#include "target/cpu/kernel_call.h"

/* Bytes of shared memory for partial results, before the values of a row. */
enum { O3_NVPTX_PARTIAL_BYTES = O3_GPU_BLOCK_THREADS * 8 };

/* One linalg.generic on buffers. */
o3_status_t o3_nvptx_generic_op(o3_pass_env_t *env, MlirOperation op) O3_MUST_USE;
/* A kernel of kind contraction, rows, elementwise or movement; |label| names its nodes. */
o3_status_t o3_nvptx_generic_kernel(o3_inlined_t *kernel, const char *label) O3_MUST_USE;

#endif
