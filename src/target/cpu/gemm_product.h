/* Matrix products, batched or not, in any transposition, and convolutions as the packed kernel (gemm_text.h)
 * sees them: rows, columns and depth, and loops around. */
#ifndef O3_TARGET_CPU_GEMM_PRODUCT_H
#define O3_TARGET_CPU_GEMM_PRODUCT_H

#include "target/cpu/loops.h"
#include "target/cpu/nest.h"

typedef struct o3_gemm_dims {
  int count;
  int at[O3_IR_MAX_RANK];
} o3_gemm_dims_t;

/* out += a * b: one row dim, one or two column dims, up to three depth dims take part in the kernel. */
typedef struct o3_gemm_product {
  o3_nest_t *nest;
  const o3_nest_operand_t *a, *b, *c;
  o3_gemm_dims_t rows, columns, depth, around; /* innermost last */
} o3_gemm_product_t;

/* Sorts the dims of |nest|, out += x * y in f32 or f64, by the operands that walk them: rows (a and c),
 * columns (b and c), depth (a and b), around (all, or c alone); a is the operand number |a|. False when it is
 * no such product. */
bool o3_gemm_sort(o3_nest_t *nest, int a, o3_gemm_product_t *product);

/* False when |nest| is no product in f32 or f64 that the kernel takes; its dims may have been merged. */
bool o3_gemm_match(o3_nest_t *nest, o3_gemm_product_t *product);

/* The dims that the columns were merged from, outermost first. */
void o3_gemm_list_columns(const o3_gemm_product_t *product, o3_gemm_dims_t *parts);

/* The number of iterations of all |dims|; sizes known only at run time count as |unknown|, and make it -1
 * when that is negative. */
int64_t o3_gemm_count(const o3_gemm_product_t *product, const o3_gemm_dims_t *dims, int64_t unknown);
/* The same as a value, when the nest is flattened. */
MlirValue o3_gemm_size(const o3_gemm_product_t *product, o3_builder_t *builder, const o3_gemm_dims_t *dims);

/* An op on the elements of the product's output. */
typedef struct o3_gemm_side {
  o3_nest_t nest;
  int dims[O3_IR_MAX_RANK]; /* for each dim of the product: that of the op, or -1 */
} o3_gemm_side_t;

/* False when the op's loops are not those over the product's output. */
bool o3_gemm_read_side(const o3_gemm_product_t *product, MlirOperation op, o3_gemm_side_t *side);

/* The columns of a block are one run: they become one dim of the op, in which each operand is linear. The
 * reason why that cannot be, or NULL. */
const char *o3_gemm_merge_columns(const o3_gemm_product_t *product, o3_gemm_side_t *side);

/* Fixes the places of the product's |dim|, and of those merged into it, at the place |at| of the whole. */
void o3_gemm_split_place(const o3_gemm_product_t *product, const o3_gemm_side_t *side, o3_builder_t *builder,
                         int dim, MlirValue at, o3_loops_frame_t *frame);

/* The arguments of the block function (gemm_text.h). */
typedef enum o3_gemm_argument {
  O3_GEMM_A,
  O3_GEMM_A_AT,
  O3_GEMM_A_ROW,
  O3_GEMM_A_DEPTH,
  O3_GEMM_B,
  O3_GEMM_B_AT,
  O3_GEMM_C,
  O3_GEMM_C_AT,
  O3_GEMM_C_ROW,
  O3_GEMM_M_LO,
  O3_GEMM_M_HI,
  O3_GEMM_N_LO,
  O3_GEMM_N_HI,
  O3_GEMM_K1,
  O3_GEMM_K0,
  O3_GEMM_KB2,
  O3_GEMM_KB1,
  O3_GEMM_KB0,
  O3_GEMM_N0,
  O3_GEMM_NB1,
  O3_GEMM_NB0,
  O3_GEMM_DEPTH,
  O3_GEMM_FRESH,
  O3_GEMM_FETCH,
  O3_GEMM_FETCH_AT,
  O3_GEMM_FETCH_ROW,
  O3_GEMM_FETCH_ROWS,
  O3_GEMM_FETCH_COUNT,
  O3_GEMM_ARGUMENTS
} o3_gemm_argument_t;

/* All but the block's ends, for the places |ivs| around it (0 for the other dims); C is added to, and nothing
 * fetched. */
void o3_gemm_arguments(const o3_gemm_product_t *product, o3_builder_t *builder, const MlirValue *ivs,
                       MlirValue *arguments);

#endif
