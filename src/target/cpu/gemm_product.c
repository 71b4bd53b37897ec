/* By the operands that an iteration dim appears in, it is one of rows m (a and out), columns n (b and out),
 * depth k (a and b) or batch (all). Columns are the vectorised ones: out must be contiguous along the
 * innermost of them. For a convolution a is the weight (m: channels out; k: channels in, window), b the image
 * (n: pixels). One m, up to two n and up to three k take part in the kernel; other dims are loops around it.
 */
#include "target/cpu/gemm_product.h"

#include <string.h>

#include "target/cpu/product.h"

enum { MIN_ROWS = 4, MIN_COLUMNS = 4, MIN_DEPTH = 2 };
enum { MAX_DEPTH_DIMS = 3, MAX_COLUMN_DIMS = 2 };

/* ---- Recognition ---- */

static bool is_argument(MlirValue value, MlirBlock block, int index) {
  return mlirValueEqual(value, mlirBlockGetArgument(block, index));
}

/* yield(out + a * b), operands in any order. */
bool o3_product_is_multiply_add(const o3_nest_t *nest) {
  MlirBlock body = nest->body;
  MlirOperation yield = mlirBlockGetTerminator(body);
  MlirOperation add = o3_value_def(mlirOperationGetOperand(yield, 0));
  if (!o3_op_is(add, "arith.addf")) return false;
  MlirValue l = mlirOperationGetOperand(add, 0), r = mlirOperationGetOperand(add, 1);
  if (!is_argument(l, body, 2) && !is_argument(r, body, 2)) return false;
  MlirOperation mul = o3_value_def(is_argument(l, body, 2) ? r : l);
  if (!o3_op_is(mul, "arith.mulf")) return false;
  MlirValue x = mlirOperationGetOperand(mul, 0), y = mlirOperationGetOperand(mul, 1);
  return (is_argument(x, body, 0) && is_argument(y, body, 1)) ||
         (is_argument(x, body, 1) && is_argument(y, body, 0));
}

static bool has_right_types(const o3_nest_t *nest) {
  MlirType element = o3_type_element(mlirValueGetType(nest->operands[2].value));
  if (!mlirTypeIsAF32(element) && !mlirTypeIsAF64(element)) return false;
  for (int i = 0; i < 3; ++i) {
    if (!nest->operands[i].is_memref) return false;
    if (!mlirTypeEqual(o3_type_element(mlirValueGetType(nest->operands[i].value)), element)) return false;
    for (int d = 0; d < nest->num_dims; ++d) {
      if (!o3_nest_is_linear(&nest->operands[i], d)) return false;
    }
  }
  return true;
}

static void push(o3_gemm_dims_t *dims, int dim) { dims->at[dims->count++] = dim; }

/* False when some dim has no part. One that only C has (a batch of one, which A's map has a zero for) is
 * around. */
static bool sort_dims(o3_gemm_product_t *p) {
  const o3_nest_t *nest = p->nest;
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->merged_into[d] >= 0) continue;
    bool a = o3_nest_uses(p->a, d), b = o3_nest_uses(p->b, d), c = o3_nest_uses(p->c, d);
    if ((!c && !(a && b)) || nest->reduction[d] != !c) return false;
    push(!c ? &p->depth : a == b ? &p->around : a ? &p->rows : &p->columns, d);
  }
  return true;
}

/* Keeps the last |kept| dims and moves the others around the kernel. */
static void keep_last(o3_gemm_product_t *p, o3_gemm_dims_t *dims, int kept) {
  int moved = dims->count - kept;
  if (moved <= 0) return;
  for (int i = 0; i < moved; ++i) push(&p->around, dims->at[i]);
  memmove(dims->at, dims->at + moved, (size_t)kept * sizeof(int));
  dims->count = kept;
}

/* The row dim with the most iterations comes last. */
static void largest_last(const o3_nest_t *nest, o3_gemm_dims_t *dims) {
  for (int i = 0; i + 1 < dims->count; ++i) {
    int last = dims->at[dims->count - 1];
    int64_t x = nest->sizes[dims->at[i]], y = nest->sizes[last];
    if (y < 0 || (x >= 0 && x <= y)) continue;
    dims->at[dims->count - 1] = dims->at[i];
    dims->at[i] = last;
  }
}

/* The n along which the output is contiguous comes last, that around it before. */
static bool order_columns(o3_gemm_product_t *p) {
  o3_gemm_dims_t *n = &p->columns;
  int64_t step;
  int inner = -1;
  for (int i = 0; i < n->count; ++i) {
    if (o3_nest_step(p->c, n->at[i], &step) && step == 1) inner = i;
  }
  if (inner < 0) return false;
  int dim = n->at[inner];
  memmove(n->at + inner, n->at + inner + 1, (size_t)(n->count - inner - 1) * sizeof(int));
  n->at[n->count - 1] = dim;
  return true;
}

/* Two column dims are one run of columns if the output walks them as one, and if the image does not step
 * back from one row of columns to the next (packing tells consecutive elements by the ends of a vector). */
static bool can_join(const o3_gemm_product_t *p, int outer, int inner) {
  int64_t b_outer, b_inner;
  if (!o3_nest_walks_as_one(p->c, outer, inner)) return false;
  bool known =
      o3_nest_step(p->b, outer, &b_outer) && o3_nest_step(p->b, inner, &b_inner) && p->nest->sizes[inner] > 0;
  if (known) return b_inner >= 1 && b_outer > b_inner * (p->nest->sizes[inner] - 1);
  for (int r = 0; r < p->b->num_terms; ++r) {
    bool first = mlirAffineExprIsFunctionOfDim(p->b->exprs[r], outer);
    bool second = mlirAffineExprIsFunctionOfDim(p->b->exprs[r], inner);
    if (first || second) return first && !second && p->b->is_contiguous;
  }
  return false;
}

/* A's address must be linear in the flat k. */
static bool is_depth_flat(const o3_gemm_product_t *p) {
  for (int i = 0; i + 1 < p->depth.count; ++i) {
    int64_t outer, inner;
    bool known = o3_nest_step(p->a, p->depth.at[i], &outer) && o3_nest_step(p->a, p->depth.at[i + 1], &inner);
    int64_t size = p->nest->sizes[p->depth.at[i + 1]];
    if (!known || size < 0 || outer != inner * size) return false;
  }
  return true;
}

int64_t o3_gemm_count(const o3_gemm_product_t *p, const o3_gemm_dims_t *dims, int64_t unknown) {
  int64_t count = 1;
  for (int i = 0; i < dims->count; ++i) {
    int64_t size = p->nest->sizes[dims->at[i]];
    if (size < 0) size = unknown;
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return -1;
  }
  return count;
}

static bool is_worth_it(const o3_gemm_product_t *p) {
  int64_t rows = p->nest->sizes[p->rows.at[0]], columns = o3_gemm_count(p, &p->columns, -1);
  int64_t depth = o3_gemm_count(p, &p->depth, -1);
  return (rows < 0 || rows >= MIN_ROWS) && (columns < 0 || columns >= MIN_COLUMNS) &&
         (depth < 0 || depth >= MIN_DEPTH);
}

bool o3_gemm_sort(o3_nest_t *nest, int a, o3_gemm_product_t *p) {
  *p = (o3_gemm_product_t){
      .nest = nest, .a = &nest->operands[a], .b = &nest->operands[1 - a], .c = &nest->operands[2]};
  return nest->num_inputs == 2 && nest->num_operands == 3 && o3_product_is_multiply_add(nest) &&
         has_right_types(nest) && sort_dims(p);
}

static bool match_sides(o3_nest_t *nest, int a, o3_gemm_product_t *p) {
  if (!o3_gemm_sort(nest, a, p) || !p->rows.count || !p->columns.count || !p->depth.count) return false;
  if (!order_columns(p) || p->depth.count > MAX_DEPTH_DIMS || !is_depth_flat(p)) return false;
  largest_last(nest, &p->rows);
  keep_last(p, &p->rows, 1);
  int n = p->columns.count;
  bool joined = n > 1 && can_join(p, p->columns.at[n - 2], p->columns.at[n - 1]);
  keep_last(p, &p->columns, joined ? MAX_COLUMN_DIMS : 1);
  return is_worth_it(p);
}

bool o3_gemm_match(o3_nest_t *nest, o3_gemm_product_t *p) {
  return match_sides(nest, 0, p) || match_sides(nest, 1, p);
}

/* ---- The kernel's arguments ---- */

MlirValue o3_gemm_size(const o3_gemm_product_t *p, o3_builder_t *b, const o3_gemm_dims_t *dims) {
  MlirValue size = p->nest->size_values[dims->at[0]];
  for (int i = 1; i < dims->count; ++i)
    size = o3_build2(b, "arith.muli", size, p->nest->size_values[dims->at[i]]);
  return size;
}

/* Values |from| the end of |dims|: sizes or steps in B; missing dims count as |missing|. */
static MlirValue size_from_end(const o3_gemm_product_t *p, o3_builder_t *b, const o3_gemm_dims_t *dims,
                               int from) {
  int at = dims->count - 1 - from;
  return at < 0 ? o3_build_index(b, 1) : p->nest->size_values[dims->at[at]];
}

static MlirValue step_from_end(const o3_gemm_product_t *p, o3_builder_t *b, const o3_gemm_dims_t *dims,
                               int from) {
  int at = dims->count - 1 - from;
  return at < 0 ? o3_build_index(b, 0) : o3_nest_step_value(p->b, dims->at[at], b);
}

void o3_gemm_arguments(const o3_gemm_product_t *p, o3_builder_t *b, const MlirValue *ivs,
                       MlirValue *arguments) {
  const MlirValue zero = o3_build_index(b, 0);
  const MlirValue all[] = {[O3_GEMM_A] = p->a->flat,
                           [O3_GEMM_A_AT] = o3_nest_address(p->nest, p->a, b, ivs),
                           [O3_GEMM_A_ROW] = o3_nest_step_value(p->a, p->rows.at[0], b),
                           [O3_GEMM_A_DEPTH] = o3_nest_step_value(p->a, p->depth.at[p->depth.count - 1], b),
                           [O3_GEMM_B] = p->b->flat,
                           [O3_GEMM_B_AT] = o3_nest_address(p->nest, p->b, b, ivs),
                           [O3_GEMM_C] = p->c->flat,
                           [O3_GEMM_C_AT] = o3_nest_address(p->nest, p->c, b, ivs),
                           [O3_GEMM_C_ROW] = o3_nest_step_value(p->c, p->rows.at[0], b),
                           [O3_GEMM_K1] = size_from_end(p, b, &p->depth, 1),
                           [O3_GEMM_K0] = size_from_end(p, b, &p->depth, 0),
                           [O3_GEMM_KB2] = step_from_end(p, b, &p->depth, 2),
                           [O3_GEMM_KB1] = step_from_end(p, b, &p->depth, 1),
                           [O3_GEMM_KB0] = step_from_end(p, b, &p->depth, 0),
                           [O3_GEMM_N0] = size_from_end(p, b, &p->columns, 0),
                           [O3_GEMM_NB1] = step_from_end(p, b, &p->columns, 1),
                           [O3_GEMM_NB0] = step_from_end(p, b, &p->columns, 0),
                           [O3_GEMM_DEPTH] = o3_gemm_size(p, b, &p->depth),
                           [O3_GEMM_FRESH] = zero,
                           [O3_GEMM_FETCH] = p->b->flat,
                           [O3_GEMM_FETCH_AT] = zero,
                           [O3_GEMM_FETCH_ROW] = zero,
                           [O3_GEMM_FETCH_ROWS] = zero,
                           [O3_GEMM_FETCH_COUNT] = zero};
  memcpy(arguments, all, sizeof(all));
}

/* ---- Ops on the output ---- */

static int position_of(const o3_nest_operand_t *operand, int dim) {
  for (int r = 0; r < operand->num_terms; ++r) {
    MlirAffineExpr expr = operand->all_exprs[r];
    if (mlirAffineExprIsADim(expr) && mlirAffineDimExprGetPosition(expr) == dim) return r;
  }
  return -1;
}

/* The dims of the product that |dim| is made of, outermost first. */
static void list_parts(const o3_nest_t *nest, int dim, o3_gemm_dims_t *parts) {
  for (int d = 0; d < nest->num_dims; ++d) {
    if (d == dim || nest->merged_into[d] == dim) push(parts, d);
  }
}

void o3_gemm_list_columns(const o3_gemm_product_t *p, o3_gemm_dims_t *parts) {
  *parts = (o3_gemm_dims_t){0};
  for (int i = 0; i < p->columns.count; ++i) list_parts(p->nest, p->columns.at[i], parts);
}

bool o3_gemm_read_side(const o3_gemm_product_t *p, MlirOperation op, o3_gemm_side_t *side) {
  if (!o3_nest_read_any(op, &side->nest)) return false;
  const o3_nest_operand_t *out = &side->nest.operands[side->nest.num_inputs];
  for (int d = 0; d < p->nest->num_dims; ++d) {
    int position = position_of(p->c, d);
    MlirAffineExpr expr = position < 0 ? (MlirAffineExpr){0} : out->all_exprs[position];
    side->dims[d] = expr.ptr && mlirAffineExprIsADim(expr) ? (int)mlirAffineDimExprGetPosition(expr) : -1;
    if (position >= 0 && side->dims[d] < 0) return false;
  }
  return true;
}

/* The columns of a block are one run: they must be one dim of the op, and each operand linear in it. */
const char *o3_gemm_merge_columns(const o3_gemm_product_t *p, o3_gemm_side_t *side) {
  o3_gemm_dims_t columns;
  o3_gemm_list_columns(p, &columns);
  for (int i = 0; i < columns.count; ++i) columns.at[i] = side->dims[columns.at[i]];
  if (!o3_nest_merge_dims(&side->nest, columns.count, columns.at))
    return "an input does not run along the columns of the product as the result does";
  for (int i = 0; i < side->nest.num_operands; ++i) {
    if (!o3_nest_is_linear(&side->nest.operands[i], columns.at[columns.count - 1]))
      return "an input is not linear in the columns";
  }
  return NULL;
}

/* The places of the product's |dim| and those merged into it, from the place |at| of the whole. */
void o3_gemm_split_place(const o3_gemm_product_t *p, const o3_gemm_side_t *side, o3_builder_t *b, int dim,
                         MlirValue at, o3_loops_frame_t *frame) {
  o3_gemm_dims_t parts = {0};
  list_parts(p->nest, dim, &parts);
  for (int i = parts.count - 1; i >= 0; --i) {
    int own = side->dims[parts.at[i]];
    frame->fixed[own] = true;
    frame->ivs[own] = i ? o3_build2(b, "arith.remui", at, side->nest.size_values[own]) : at;
    if (i) at = o3_build2(b, "arith.divui", at, side->nest.size_values[own]);
  }
}
