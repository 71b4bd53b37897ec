/* Softmax and layer normalisation: reductions along rows and elementwise ops with their results. All of it is
 * computed in f32 for half-precision tensors, f64 stays f64. */
#include <math.h>
#include <string.h>

#include "target/ref/lowering.h"
#include "target/ref/scalar.h"

/* A tensor seen as rows: the dimensions in |iterators| with 'r' are inside a row. */
typedef struct rows {
  o3_lw_t *lw;
  MlirOperation op;
  char iterators[O3_IR_MAX_RANK + 1];
  o3_shape_t shape, outer; /* outer: one element for each row */
  MlirAffineMap whole, row;
  MlirType element, wide;
  bool log, centered;
  MlirValue count, epsilon;
} rows_t;

static void init_rows(rows_t *it, o3_lw_t *lw, MlirOperation op, int first, int last) {
  int64_t kept[O3_IR_MAX_RANK];
  *it = (rows_t){.lw = lw, .op = op, .element = o3_lw_new_element(op, 0)};
  it->wide = o3_scalar_wide_type(it->element);
  o3_lw_operand_shape(lw, op, 0, &it->shape);
  for (int i = 0; i < it->shape.rank; ++i) {
    bool inside = i >= first && i < last;
    it->iterators[i] = inside ? 'r' : 'p';
    if (inside) continue;
    kept[it->outer.rank] = i;
    it->outer.dims[it->outer.rank++] = it->shape.dims[i];
  }
  it->whole = o3_lw_identity(lw, it->shape.rank);
  it->row = o3_lw_projection(lw, it->shape.rank, it->outer.rank, kept);
}

/* One value a row, from |init|; |inputs|: a whole tensor, then |count| - 1 values of rows. */
static MlirValue reduce_rows(rows_t *it, double init, int count, const MlirValue *inputs, o3_body_fn_t body) {
  MlirValue start = o3_build_number(&it->lw->builder, it->wide, init), result;
  o3_generic_t generic = {.op = it->op,
                          .iterators = it->iterators,
                          .num_inputs = count,
                          .num_outputs = 1,
                          .outputs = {o3_lw_fill(it->lw, &it->outer, start)},
                          .body = body,
                          .context = it};
  for (int i = 0; i < count; ++i) {
    generic.inputs[i] = inputs[i];
    generic.maps[i] = i == 0 ? it->whole : it->row;
  }
  generic.maps[count] = it->row;
  o3_lw_generic(it->lw, &generic, &result);
  return result;
}

/* A whole tensor of |element| from whole tensors and rows; |maps| tell which each input is. */
static MlirValue map_rows(rows_t *it, MlirType element, int count, const MlirValue *inputs,
                          const MlirAffineMap *maps, o3_body_fn_t body) {
  char parallel[O3_IR_MAX_RANK + 1] = {0};
  MlirValue result;
  memset(parallel, 'p', (size_t)it->shape.rank);
  o3_generic_t generic = {.op = it->op,
                          .iterators = parallel,
                          .num_inputs = count,
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(it->lw, &it->shape, element)},
                          .body = body,
                          .context = it};
  for (int i = 0; i < count; ++i) {
    generic.inputs[i] = inputs[i];
    generic.maps[i] = maps[i];
  }
  generic.maps[count] = it->whole;
  o3_lw_generic(it->lw, &generic, &result);
  return result;
}

/* ---- o3.softmax ---- */

static void max_body(const o3_body_args_t *in) {
  in->results[0] =
      o3_build2(in->builder, "arith.maximumf", o3_scalar_widen(in->builder, in->args[0]), in->args[1]);
}

/* x - max, or its exponential. */
static void shift_body(const o3_body_args_t *in) {
  const rows_t *it = in->context;
  o3_builder_t *b = in->builder;
  MlirValue shifted = o3_build2(b, "arith.subf", o3_scalar_widen(b, in->args[0]), in->args[1]);
  in->results[0] = it->log ? shifted : o3_build_unary(b, "math.exp", shifted);
}

static void sum_body(const o3_body_args_t *in) {
  const rows_t *it = in->context;
  MlirValue x = it->log ? o3_build_unary(in->builder, "math.exp", in->args[0]) : in->args[0];
  in->results[0] = o3_build2(in->builder, "arith.addf", in->args[1], x);
}

static void softmax_body(const o3_body_args_t *in) {
  const rows_t *it = in->context;
  o3_builder_t *b = in->builder;
  MlirValue y = it->log ? o3_build2(b, "arith.subf", in->args[0], o3_build_unary(b, "math.log", in->args[1]))
                        : o3_build2(b, "arith.divf", in->args[0], in->args[1]);
  in->results[0] = o3_scalar_narrow(b, y, it->element);
}

o3_status_t o3_lower_softmax(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  int axis = (int)o3_op_int(op, "axis", 0);
  rows_t it;
  init_rows(&it, lw, op, axis, axis + 1);
  it.log = o3_op_bool(op, "log", false);
  const MlirAffineMap maps[] = {it.whole, it.row};
  MlirValue largest = reduce_rows(&it, -(double)INFINITY, 1, operands, max_body);
  MlirValue shifted = map_rows(&it, it.wide, O3_VALUES(operands[0], largest), maps, shift_body);
  MlirValue sum = reduce_rows(&it, 0, 1, &shifted, sum_body);
  results[0] = map_rows(&it, it.element, O3_VALUES(shifted, sum), maps, softmax_body);
  return NULL;
}

/* ---- o3.layer_norm ---- */

static void total_body(const o3_body_args_t *in) {
  in->results[0] =
      o3_build2(in->builder, "arith.addf", in->args[1], o3_scalar_widen(in->builder, in->args[0]));
}

static void mean_body(const o3_body_args_t *in) {
  const rows_t *it = in->context;
  in->results[0] = o3_build2(in->builder, "arith.divf", in->args[0], it->count);
}

static MlirValue minus_mean(const rows_t *it, o3_builder_t *b, MlirValue x, MlirValue mean) {
  MlirValue wide = o3_scalar_widen(b, x);
  return it->centered ? o3_build2(b, "arith.subf", wide, mean) : wide;
}

/* args: x, [mean], acc */
static void square_body(const o3_body_args_t *in) {
  const rows_t *it = in->context;
  o3_builder_t *b = in->builder;
  MlirValue d = minus_mean(it, b, in->args[0], in->args[1]);
  in->results[0] =
      o3_build2(b, "arith.addf", in->args[it->centered ? 2 : 1], o3_build2(b, "arith.mulf", d, d));
}

static void deviation_body(const o3_body_args_t *in) {
  const rows_t *it = in->context;
  o3_builder_t *b = in->builder;
  MlirValue variance = o3_build2(b, "arith.divf", in->args[0], it->count);
  in->results[0] = o3_build_unary(b, "math.sqrt", o3_build2(b, "arith.addf", variance, it->epsilon));
}

/* args: x, deviation, scale, [mean], [bias] */
static void layer_norm_body(const o3_body_args_t *in) {
  const rows_t *it = in->context;
  o3_builder_t *b = in->builder;
  bool has_bias = mlirOperationGetNumOperands(in->op) > 2;
  MlirValue centered = minus_mean(it, b, in->args[0], in->args[3]);
  MlirValue y = o3_build2(b, "arith.divf", centered, in->args[1]);
  y = o3_build2(b, "arith.mulf", y, o3_scalar_widen(b, in->args[2]));
  if (has_bias) y = o3_build2(b, "arith.addf", y, o3_scalar_widen(b, in->args[it->centered ? 4 : 3]));
  in->results[0] = o3_scalar_narrow(b, y, it->element);
}

static MlirAffineMap operand_map(const rows_t *it, int operand) {
  o3_shape_t shape;
  o3_lw_operand_shape(it->lw, it->op, operand, &shape);
  return o3_lw_broadcast_map(it->lw, &shape, &it->shape);
}

static void set_constants(rows_t *it, int first) {
  o3_lw_t *lw = it->lw;
  o3_builder_t *b = &lw->builder;
  MlirType i64 = mlirIntegerTypeGet(lw->context, 64);
  MlirValue size = o3_lw_size(lw, o3_shape_product(lw->context, &it->shape, first, it->shape.rank));
  MlirValue integer = o3_build1(b, "arith.index_cast", i64, O3_VALUES(size));
  it->count = o3_build1(b, "arith.sitofp", it->wide, O3_VALUES(integer));
  it->epsilon = o3_build_float(b, it->wide, o3_op_float(it->op, "epsilon", 0));
  it->centered = !o3_op_bool(it->op, "rms", false);
}

o3_status_t o3_lower_layer_norm(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                MlirValue *results) {
  int axis = (int)o3_op_int(op, "axis", 0), count = 3;
  rows_t it;
  init_rows(&it, lw, op, axis, O3_IR_MAX_RANK);
  set_constants(&it, axis);
  MlirValue x = operands[0], mean = {0};
  if (it.centered) {
    MlirValue total = reduce_rows(&it, 0, 1, &x, total_body);
    mean = o3_lw_map_shaped(lw, &it.outer, it.wide, 1, &total, &it.outer, mean_body, &it);
  }
  MlirValue pair[2] = {x, mean};
  MlirValue squares = reduce_rows(&it, 0, it.centered ? 2 : 1, pair, square_body);
  MlirValue deviation = o3_lw_map_shaped(lw, &it.outer, it.wide, 1, &squares, &it.outer, deviation_body, &it);
  MlirValue inputs[5] = {x, deviation, operands[1]};
  MlirAffineMap maps[5] = {it.whole, it.row, operand_map(&it, 1)};
  if (it.centered) {
    inputs[count] = mean;
    maps[count++] = it.row;
  }
  if (mlirOperationGetNumOperands(op) > 2) {
    inputs[count] = operands[2];
    maps[count++] = operand_map(&it, 2);
  }
  results[0] = map_rows(&it, it.element, count, inputs, maps, layer_norm_body);
  return NULL;
}
