/* Long sums of few results, in two steps, so that more threads than results have work:
 *
 *     y[r] = sum over k of f(x[r, k])  ->  p[s, r] = sum over k' of f(x[r, s, k']),  y[r] = sum over s of
 * p[s, r]
 */
#ifndef O3_TARGET_NVPTX_SPLIT_SUMS_H
#define O3_TARGET_NVPTX_SPLIT_SUMS_H

#include "ir/pass.h"

/* On tensors, before ops become kernels: o3_kernel_support_t's prepare. */
o3_status_t o3_nvptx_split_sums(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

#endif
