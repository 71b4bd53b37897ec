/* Convolutions among the kernels of the fuse stage: a product one of whose factors walks windows. */
#ifndef O3_TARGET_NVPTX_WINDOW_SITE_H
#define O3_TARGET_NVPTX_WINDOW_SITE_H

#include "target/cpu/halo.h"
#include "target/cpu/nest.h"
#include "target/nvptx/gemm_kernel.h"

/* Reads a product whose first input is an image with the channels last, on which |halo| puts a border (NULL:
 * it has none), and whose second is the weights, by rows for each output, as gemm_kernel.h describes it:
 * |gemm|'s sizes and pitches, and |window|. |groups| gets for each loop the dimension of the result that it
 * is part of, O3_GEMM_ROW or O3_GEMM_COLUMN, O3_GEMM_DIMS for sums, -1 for those of one turn. Gives the
 * reason why it is none, static, or NULL. */
const char *o3_window_site_read(const o3_nest_t *nest, const o3_halo_t *halo, o3_gemm_t *gemm,
                                o3_gemm_window_t *window, int groups[O3_IR_MAX_RANK]);

#endif
