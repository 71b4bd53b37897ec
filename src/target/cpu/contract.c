/* cpu-contract: products become calls of a packed, register-tiled kernel (gemm_text.h).
 *
 * Needs: linalg.generic on buffers. Guarantees: a generic that computes out += a * b in f32 or f64, with all
 * index expressions linear, is a parallel loop over blocks of the output; others are left as they are.
 *
 * Matrix products, batched or not, in any transposition, and convolutions, grouped or not, are one case. By
 * the operands that an iteration dim appears in, it is one of rows m (a and out), columns n (b and out),
 * depth k (a and b) or batch (all). Columns are the vectorised ones: out must be contiguous along the
 * innermost of them. For a convolution a is the weight (m: channels out; k: channels in, window), b the image
 * (n: pixels). One m, up to two n and up to three k take part in the kernel; other dims are loops around it.
 * Left alone are products with few rows or columns (depthwise convolutions, products with vectors): packing
 * does not pay.
 *
 * In a contraction kernel of the fuse stage a task also runs, on its block of the output and while that is in
 * the cache, what the sums start at and what is done with them: other generics whose dims correspond to those
 * of the product through the dimensions of the output.
 */
#include <stdlib.h>
#include <string.h>

#include "target/cpu/blocked.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/gemm_text.h"
#include "target/cpu/halo.h"
#include "target/cpu/loops.h"
#include "target/cpu/product.h"

enum { MIN_ROWS = 4, MIN_COLUMNS = 4, MIN_DEPTH = 2 };
enum { MAX_DEPTH_DIMS = 3, MAX_COLUMN_DIMS = 2 };

typedef struct dims {
  int count;
  int at[O3_IR_MAX_RANK];
} dims_t;

typedef struct product {
  o3_nest_t *nest;
  const o3_nest_operand_t *a, *b, *c;
  dims_t rows, columns, depth, around; /* innermost last */
} product_t;

typedef struct contract {
  o3_pass_env_t *env;
  MlirModule module;
} contract_t;

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

static void push(dims_t *dims, int dim) { dims->at[dims->count++] = dim; }

/* False when some dim has no part. */
static bool sort_dims(product_t *p) {
  const o3_nest_t *nest = p->nest;
  for (int d = 0; d < nest->num_dims; ++d) {
    if (nest->merged_into[d] >= 0) continue;
    bool a = o3_nest_uses(p->a, d), b = o3_nest_uses(p->b, d), c = o3_nest_uses(p->c, d);
    bool known = c ? a || b : a && b;
    if (!known || nest->reduction[d] != !c) return false;
    push(!c ? &p->depth : a && b ? &p->around : a ? &p->rows : &p->columns, d);
  }
  return p->rows.count && p->columns.count && p->depth.count;
}

/* Keeps the last |kept| dims and moves the others around the kernel. */
static void keep_last(product_t *p, dims_t *dims, int kept) {
  int moved = dims->count - kept;
  if (moved <= 0) return;
  for (int i = 0; i < moved; ++i) push(&p->around, dims->at[i]);
  memmove(dims->at, dims->at + moved, (size_t)kept * sizeof(int));
  dims->count = kept;
}

/* The row dim with the most iterations comes last. */
static void largest_last(const o3_nest_t *nest, dims_t *dims) {
  for (int i = 0; i + 1 < dims->count; ++i) {
    int last = dims->at[dims->count - 1];
    int64_t x = nest->sizes[dims->at[i]], y = nest->sizes[last];
    if (y < 0 || (x >= 0 && x <= y)) continue;
    dims->at[dims->count - 1] = dims->at[i];
    dims->at[i] = last;
  }
}

/* The n along which the output is contiguous comes last, that around it before. */
static bool order_columns(product_t *p) {
  dims_t *n = &p->columns;
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
static bool can_join(const product_t *p, int outer, int inner) {
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
static bool is_depth_flat(const product_t *p) {
  for (int i = 0; i + 1 < p->depth.count; ++i) {
    int64_t outer, inner;
    bool known = o3_nest_step(p->a, p->depth.at[i], &outer) && o3_nest_step(p->a, p->depth.at[i + 1], &inner);
    int64_t size = p->nest->sizes[p->depth.at[i + 1]];
    if (!known || size < 0 || outer != inner * size) return false;
  }
  return true;
}

static bool is_worth_it(const product_t *p) {
  int64_t rows = p->nest->sizes[p->rows.at[0]], columns = 1, depth = 1;
  for (int i = 0; i < p->columns.count; ++i) {
    int64_t size = p->nest->sizes[p->columns.at[i]];
    columns = size < 0 || columns < 0 ? -1 : columns * size;
  }
  for (int i = 0; i < p->depth.count; ++i) {
    int64_t size = p->nest->sizes[p->depth.at[i]];
    depth = size < 0 || depth < 0 ? -1 : depth * size;
  }
  return (rows < 0 || rows >= MIN_ROWS) && (columns < 0 || columns >= MIN_COLUMNS) &&
         (depth < 0 || depth >= MIN_DEPTH);
}

static bool match_sides(o3_nest_t *nest, int a, product_t *p) {
  *p = (product_t){
      .nest = nest, .a = &nest->operands[a], .b = &nest->operands[1 - a], .c = &nest->operands[2]};
  if (!sort_dims(p) || !order_columns(p) || p->depth.count > MAX_DEPTH_DIMS || !is_depth_flat(p))
    return false;
  largest_last(nest, &p->rows);
  keep_last(p, &p->rows, 1);
  int n = p->columns.count;
  bool joined = n > 1 && can_join(p, p->columns.at[n - 2], p->columns.at[n - 1]);
  keep_last(p, &p->columns, joined ? MAX_COLUMN_DIMS : 1);
  return is_worth_it(p);
}

static bool match(o3_nest_t *nest, product_t *p) {
  bool fits = nest->num_inputs == 2 && nest->num_operands == 3 && o3_product_is_multiply_add(nest) &&
              has_right_types(nest);
  return fits && (match_sides(nest, 0, p) || match_sides(nest, 1, p));
}

/* ---- Blocks ---- */

/* Rows of a block: all, unless that leaves threads without work; B is packed anew for each block of rows. */
static int64_t rows_of_block(const product_t *p, const o3_gemm_shape_t *shape) {
  enum { TASKS = 16, LEAST = 64, UNKNOWN = 256 };
  int64_t tasks = 1, rows = p->nest->sizes[p->rows.at[0]], columns = 1;
  for (int i = 0; i < p->columns.count; ++i) {
    int64_t size = p->nest->sizes[p->columns.at[i]];
    columns *= size < 0 ? shape->columns : size;
  }
  for (int i = 0; i < p->around.count; ++i) {
    int64_t size = p->nest->sizes[p->around.at[i]];
    tasks *= size < 0 ? 1 : size;
  }
  tasks *= (columns + shape->columns - 1) / shape->columns;
  if (rows < 0) return UNKNOWN;
  int64_t pieces = tasks >= TASKS || tasks == 0 ? 1 : (TASKS + tasks - 1) / tasks;
  int64_t block = (rows + pieces - 1) / pieces;
  block = block < LEAST ? LEAST : block;
  return (block + shape->rows - 1) / shape->rows * shape->rows;
}

static int64_t block_work(const product_t *p, const o3_gemm_shape_t *shape, int64_t rows) {
  double work = (double)rows * shape->columns / shape->lanes;
  for (int i = 0; i < p->depth.count; ++i) {
    int64_t size = p->nest->sizes[p->depth.at[i]];
    work *= size < 0 ? 64 : (double)size;
  }
  return work < 1 ? 1 : work > 1e15 ? (int64_t)1e15 : (int64_t)work;
}

static MlirValue product_of_sizes(const product_t *p, o3_builder_t *b, const dims_t *dims) {
  MlirValue size = p->nest->size_values[dims->at[0]];
  for (int i = 1; i < dims->count; ++i)
    size = o3_build2(b, "arith.muli", size, p->nest->size_values[dims->at[i]]);
  return size;
}

/* Values |from| the end of |dims|: sizes or steps in B; missing dims count as |missing|. */
static MlirValue size_from_end(const product_t *p, o3_builder_t *b, const dims_t *dims, int from) {
  int at = dims->count - 1 - from;
  return at < 0 ? o3_build_index(b, 1) : p->nest->size_values[dims->at[at]];
}

static MlirValue step_from_end(const product_t *p, o3_builder_t *b, const dims_t *dims, int from) {
  int at = dims->count - 1 - from;
  return at < 0 ? o3_build_index(b, 0) : o3_nest_step_value(p->b, dims->at[at], b);
}

static MlirValue block_end(o3_builder_t *b, MlirValue start, int64_t size, MlirValue total) {
  return o3_build2(b, "arith.minsi", o3_build2(b, "arith.addi", start, o3_build_index(b, size)), total);
}

static void call_block(o3_builder_t *b, const char *name, int num, const MlirValue *operands) {
  o3_op_spec_t spec = {
      .name = "func.call",
      .num_operands = num,
      .operands = operands,
      .num_attrs = 1,
      .attrs = (o3_attr_t[]){{"callee", mlirFlatSymbolRefAttrGet(b->context, O3_STR(name))}}};
  o3_build(b, &spec);
}

/* ---- Other ops on a block ---- */

enum { MAX_SIDE_OPS = 4 };

/* An op on the elements of the product's output. */
typedef struct side {
  o3_nest_t nest;
  int dims[O3_IR_MAX_RANK]; /* for each dim of the product: that of the op, or -1 */
} side_t;

static int position_of(const o3_nest_operand_t *operand, int dim) {
  for (int r = 0; r < operand->num_terms; ++r) {
    MlirAffineExpr expr = operand->all_exprs[r];
    if (mlirAffineExprIsADim(expr) && mlirAffineDimExprGetPosition(expr) == dim) return r;
  }
  return -1;
}

/* The dims of the product that |dim| is made of, outermost first. */
static void list_parts(const o3_nest_t *nest, int dim, dims_t *parts) {
  for (int d = 0; d < nest->num_dims; ++d) {
    if (d == dim || nest->merged_into[d] == dim) push(parts, d);
  }
}

static void list_columns(const product_t *p, dims_t *parts) {
  *parts = (dims_t){0};
  for (int i = 0; i < p->columns.count; ++i) list_parts(p->nest, p->columns.at[i], parts);
}

static bool read_side(const product_t *p, MlirOperation op, side_t *side) {
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
static const char *merge_columns(const product_t *p, side_t *side) {
  dims_t columns;
  list_columns(p, &columns);
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
static void split_place(const product_t *p, const side_t *side, o3_builder_t *b, int dim, MlirValue at,
                        o3_loops_frame_t *frame) {
  dims_t parts = {0};
  list_parts(p->nest, dim, &parts);
  for (int i = parts.count - 1; i >= 0; --i) {
    int own = side->dims[parts.at[i]];
    frame->fixed[own] = true;
    frame->ivs[own] = i ? o3_build2(b, "arith.remui", at, side->nest.size_values[own]) : at;
    if (i) at = o3_build2(b, "arith.divui", at, side->nest.size_values[own]);
  }
}

/* A block: the places around it, and its ends. */
typedef struct block {
  const product_t *p;
  const MlirValue *around;
  MlirValue row_lower, row_upper, column_lower, column_upper;
  side_t *side;
} block_t;

static o3_status_t side_row(o3_builder_t *b, void *context, MlirValue row, const MlirValue *carried,
                            MlirValue *next) {
  const block_t *block = context;
  const product_t *p = block->p;
  dims_t columns;
  (void)carried, (void)next;
  list_columns(p, &columns);
  o3_loops_frame_t frame = {.ranged = block->side->dims[columns.at[columns.count - 1]],
                            .lower = block->column_lower,
                            .upper = block->column_upper};
  for (int i = 0; i < p->around.count; ++i)
    split_place(p, block->side, b, p->around.at[i], block->around[i], &frame);
  split_place(p, block->side, b, p->rows.at[0], row, &frame);
  return o3_loops_build(&block->side->nest, b, &frame);
}

static o3_status_t build_side(block_t *block, o3_builder_t *b, side_t *side) {
  block->side = side;
  o3_for_t rows = {.lower = block->row_lower,
                   .upper = block->row_upper,
                   .step = o3_build_index(b, 1),
                   .body = side_row,
                   .context = block};
  return o3_build_for(b, &rows, NULL);
}

static o3_status_t build_sides(block_t *block, o3_builder_t *b, int count, side_t *sides) {
  for (int i = 0; i < count; ++i) O3_TRY(build_side(block, b, &sides[i]));
  return NULL;
}

typedef struct sides {
  int num_before, num_after;
  side_t before[MAX_SIDE_OPS], after[MAX_SIDE_OPS];
} sides_t;

static o3_status_t build_product(const product_t *p, o3_builder_t *b, const o3_gemm_shape_t *shape,
                                 const char *name, sides_t *sides) {
  MlirValue sizes[O3_IR_MAX_RANK + 1], steps[O3_IR_MAX_RANK + 1], at[O3_IR_MAX_RANK + 1], ivs[O3_IR_MAX_RANK];
  int64_t block = rows_of_block(p, shape);
  int count = p->around.count;
  MlirValue zero = o3_build_index(b, 0), one = o3_build_index(b, 1);
  MlirValue rows = product_of_sizes(p, b, &p->rows), columns = product_of_sizes(p, b, &p->columns);
  MlirValue depth = product_of_sizes(p, b, &p->depth);
  for (int i = 0; i < count; ++i) sizes[i] = p->nest->size_values[p->around.at[i]], steps[i] = one;
  sizes[count] = rows, steps[count] = o3_build_index(b, block);
  sizes[count + 1] = columns, steps[count + 1] = o3_build_index(b, shape->columns);
  o3_builder_t in = o3_cpu_parallel(b, count + 2, sizes, steps, block_work(p, shape, block), at);
  for (int d = 0; d < p->nest->num_dims; ++d) ivs[d] = zero;
  for (int i = 0; i < count; ++i) ivs[p->around.at[i]] = at[i];
  MlirValue operands[] = {p->a->flat,
                          o3_nest_address(p->nest, p->a, &in, ivs),
                          o3_nest_step_value(p->a, p->rows.at[0], &in),
                          o3_nest_step_value(p->a, p->depth.at[p->depth.count - 1], &in),
                          p->b->flat,
                          o3_nest_address(p->nest, p->b, &in, ivs),
                          p->c->flat,
                          o3_nest_address(p->nest, p->c, &in, ivs),
                          o3_nest_step_value(p->c, p->rows.at[0], &in),
                          at[count],
                          block_end(&in, at[count], block, rows),
                          at[count + 1],
                          block_end(&in, at[count + 1], shape->columns, columns),
                          size_from_end(p, &in, &p->depth, 1),
                          size_from_end(p, &in, &p->depth, 0),
                          step_from_end(p, &in, &p->depth, 2),
                          step_from_end(p, &in, &p->depth, 1),
                          step_from_end(p, &in, &p->depth, 0),
                          size_from_end(p, &in, &p->columns, 0),
                          step_from_end(p, &in, &p->columns, 1),
                          step_from_end(p, &in, &p->columns, 0),
                          depth};
  block_t whole = {.p = p,
                   .around = at,
                   .row_lower = operands[9],
                   .row_upper = operands[10],
                   .column_lower = operands[11],
                   .column_upper = operands[12]};
  O3_TRY(build_sides(&whole, &in, sides->num_before, sides->before));
  call_block(&in, name, sizeof(operands) / sizeof(operands[0]), operands);
  return build_sides(&whole, &in, sides->num_after, sides->after);
}

static o3_status_t add_kernel(contract_t *self, const o3_gemm_shape_t *shape) {
  char *text = o3_gemm_text(shape);
  O3_TRY_ALLOC(text);
  o3_status_t status = o3_cpu_add_functions(self->module, text, "gemm");
  free(text);
  return status;
}

static o3_status_t emit(contract_t *self, product_t *product, o3_builder_t b, sides_t *sides) {
  int bits = o3_type_bits(o3_type_element(mlirValueGetType(product->c->value)));
  o3_gemm_shape_t shape = o3_gemm_shape(self->env->machine, bits);
  O3_TRY(add_kernel(self, &shape));
  char *name = o3_gemm_block_name(&shape);
  O3_TRY_ALLOC(name);
  o3_nest_flatten(product->nest, &b);
  for (int i = 0; i < sides->num_before; ++i) o3_nest_flatten(&sides->before[i].nest, &b);
  for (int i = 0; i < sides->num_after; ++i) o3_nest_flatten(&sides->after[i].nest, &b);
  o3_status_t status = build_product(product, &b, &shape, name, sides);
  free(name);
  return status;
}

static o3_status_t replace_product(MlirOperation op, void *context) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local sides_t none;
  contract_t *self = context;
  product_t product;
  bool done;
  if (!o3_nest_read(op, &nest)) return NULL;
  O3_TRY(o3_halo_emit(self->env, op, &done));
  if (done) return NULL;
  if (o3_blocked_takes(op)) {
    const o3_product_kernel_t alone = {.product = op};
    return o3_blocked_emit(self->env, self->module, &alone);
  }
  o3_nest_merge(&nest);
  if (!match(&nest, &product)) return NULL;
  O3_TRY(emit(self, &product, o3_builder_before(op), &none));
  mlirOperationDestroy(op);
  return NULL;
}

/* ---- Kernels of the fuse stage ---- */

static bool read_product(MlirOperation op, o3_nest_t *nest, product_t *product) {
  if (!o3_nest_read_any(op, nest)) return false;
  o3_nest_merge(nest);
  return match(nest, product);
}

const char *o3_product_refuse(MlirOperation op) {
  static _Thread_local o3_nest_t nest;
  product_t product;
  if (o3_blocked_takes(op)) return NULL;
  return read_product(op, &nest, &product) ? NULL : "the register-tiled kernel does not take this product";
}

const char *o3_product_refuse_epilogue(MlirOperation op, MlirOperation other) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local side_t side;
  product_t product;
  if (o3_blocked_takes(op)) return o3_blocked_refuse_epilogue(op, other);
  if (!read_product(op, &nest, &product)) return "the register-tiled kernel does not take the product";
  if (!read_side(&product, other, &side)) return "its access maps are not those of loops over the result";
  return merge_columns(&product, &side);
}

static o3_status_t read_sides(const product_t *product, int count, const MlirOperation *ops, side_t *sides) {
  for (int i = 0; i < count; ++i) {
    const char *why =
        read_side(product, ops[i], &sides[i]) ? merge_columns(product, &sides[i]) : "other loops";
    if (why)
      return o3_status_create(O3_STATUS_INTERNAL,
                              "op '%.*s' is in the kernel of a product that cannot take it: %s",
                              O3_STR_ARGS(o3_op_label(ops[i])), why);
  }
  return NULL;
}

o3_status_t o3_product_emit(o3_pass_env_t *env, MlirModule module, const o3_product_kernel_t *kernel) {
  static _Thread_local o3_nest_t nest;
  static _Thread_local sides_t sides;
  contract_t self = {env, module};
  product_t product;
  if (o3_blocked_takes(kernel->product)) return o3_blocked_emit(env, module, kernel);
  if (!read_product(kernel->product, &nest, &product))
    return o3_status_create(O3_STATUS_INTERNAL, "op '%.*s' is in a contraction kernel but no product",
                            O3_STR_ARGS(o3_op_label(kernel->product)));
  sides.num_before = kernel->num_before;
  sides.num_after = kernel->num_after;
  O3_TRY(read_sides(&product, kernel->num_before, kernel->before, sides.before));
  O3_TRY(read_sides(&product, kernel->num_after, kernel->after, sides.after));
  MlirOperation last = kernel->num_after ? kernel->after[kernel->num_after - 1] : kernel->product;
  O3_TRY(emit(&self, &product, o3_builder_before(last), &sides));
  mlirOperationDestroy(kernel->product);
  for (int i = 0; i < kernel->num_before; ++i) mlirOperationDestroy(kernel->before[i]);
  for (int i = 0; i < kernel->num_after; ++i) mlirOperationDestroy(kernel->after[i]);
  return NULL;
}

o3_status_t o3_cpu_contract(o3_pass_env_t *env, MlirModule module) {
  contract_t self = {env, module};
  o3_cpu_load_dialects(env->context);
  return o3_walk(o3_module_func(module, "main"), replace_product, &self);
}
