/* Depthwise convolutions of images with the channels last: D = epilogue(sums), f16, bf16 or f32 factors, f32
 * sums.
 *
 *     D[(n, y, x), c] = epilogue(sum over taps (j, i) of
 *                                X[n, y * step + j * dilation - low, x * step + i * dilation - low, c] *
 *                                B[(j, i), c])       X is zero outside of the image
 *
 * What is computed is described as for convolutions (gemm_kernel.h), with window->depthwise: k is the number
 * of taps, b_pitch the elements from one tap to the next, n the channels. Buffers are numbered as there.
 */
#ifndef O3_TARGET_NVPTX_DEPTHWISE_KERNEL_H
#define O3_TARGET_NVPTX_DEPTHWISE_KERNEL_H

#include "target/nvptx/gemm_kernel.h"

/* Why the family does not take it; NULL when it does. Static text. */
const char *o3_depthwise_refuse(const o3_gemm_t *gemm);

/* How many neighbouring outputs along x a thread computes, on a card of |multiprocessors|. */
int o3_depthwise_run(const o3_gemm_t *gemm, int multiprocessors);

/* Why no kernel can be built for |run|; NULL when one can. Static text. */
const char *o3_depthwise_refuse_run(const o3_gemm_t *gemm, int run);

o3_status_t o3_depthwise_build(const o3_gemm_t *gemm, int run, const struct o3_gpu *gpu,
                               o3_gpu_kernel_t *kernel) O3_MUST_USE;

#endif
