/* What the kernels of products have in common as text: where a tile lies, what the epilogue reads, and the
 * epilogue as a function of its own. Pairs are of neighbouring columns. */
#ifndef O3_TARGET_NVPTX_PRODUCT_TEXT_H
#define O3_TARGET_NVPTX_PRODUCT_TEXT_H

#include "target/nvptx/gemm_kernel.h"

/* Values: the first row and column of a tile, and its batch; rows of the product, of o3_gemm_t's
 * rows_at_run_time. */
typedef struct o3_gemm_place {
  int row, column, batch[2];
  int rows;
} o3_gemm_place_t;

/* How a result is cut: elements of a tile, and tiles of rows that are visited before the next of columns. */
typedef struct o3_gemm_tiling {
  int rows, columns, group_rows;
} o3_gemm_tiling_t;

/* The kernel's argument, behind the pointers to A, B, extras and D, that tells its rows or batches: a value.
 */
int o3_gemm_told(o3_kernel_text_t *t, const o3_gemm_t *gemm);

/* Tiles of |rows| that |told| (value) rows have: a value. */
int o3_gemm_told_tiles(o3_kernel_text_t *t, int told, int rows);

/* Tiles of the whole result, batches included; of |tiling->rows| rows when these are known at run time. */
int64_t o3_gemm_tiles(const o3_gemm_t *gemm, const o3_gemm_tiling_t *tiling);

/* Where tile number |tile| (i32) lies. Groups of rows of tiles are walked column by column: their A stays in
 * the L2 cache. */
o3_gemm_place_t o3_gemm_tile_place(o3_kernel_text_t *t, const o3_gemm_t *gemm, const o3_gemm_tiling_t *tiling,
                                   int tile);

/* The place of an element in a buffer with |strides|, in elements. */
int o3_gemm_element_index(o3_kernel_text_t *t, const int64_t *strides, const int at[O3_GEMM_DIMS]);

/* What the epilogue of a pair reads: each extra operand at |at|, and in the next column when there is one. */
typedef struct o3_gemm_pair_extras {
  int values[O3_GEMM_MAX_EXTRAS][2];
} o3_gemm_pair_extras_t;
void o3_gemm_load_extras(o3_kernel_text_t *t, const o3_gemm_t *gemm, const int at[O3_GEMM_DIMS],
                         o3_gemm_pair_extras_t *extras);

/* The element of D of a sum; |which| of the pair |extras| are of. |kernel|: the kernel's name. */
int o3_gemm_finish(o3_kernel_text_t *t, const o3_gemm_t *gemm, const char *kernel, int sum,
                   const o3_gemm_pair_extras_t *extras, int which);

/* The pair as elements of D, from its sums. */
void o3_gemm_finish_pair(o3_kernel_text_t *t, const o3_gemm_t *gemm, const char *kernel, const int sums[2],
                         const o3_gemm_pair_extras_t *extras, int results[2]);

/* The function that the pairs call. */
void o3_gemm_write_epilogue(o3_kernel_text_t *t, const o3_gemm_t *gemm, const char *kernel);

/* The name of an element type in MLIR. */
const char *o3_gemm_type(o3_gpu_element_t element);

#endif
