/* Winograd convolutions (analysis/winograd.h) as three generics, with m outputs a tile and p = m + 2:
 *
 *     n, a, b, c, ty, tx, lane | i, j     V += x[n, c, m ty + i, m tx + j, lane] * B[a, i] * B[b, j]
 *     n, a, b, m, ty, tx, lane | c, lane  P += V * U
 *     n, m, oh, ow, lane | a, b           y += P[n, a, b, m, oh / m, ow / m, lane] * A[oh % m, a] * A[ow % m,
 * b]
 *
 * Each is marked (o3.kernel) and carries the name of its node, so that equal transforms of one x by two nodes
 * stay two: each belongs to one kernel. */
#include "analysis/winograd.h"

#include "base/check.h"
#include "target/ref/lower_blocked.h"

enum { LANES = O3_BLOCK_LANES };

typedef struct winograd {
  o3_lw_t *lw;
  MlirOperation op;
  const o3_winograd_t *form;
  o3_lw_window_t window;
  o3_shape_t x_shape, y_shape;
  MlirAffineExpr rows, columns; /* of tiles */
} winograd_t;

static void transform_body(const o3_body_args_t *in) {
  MlirValue once = o3_build2(in->builder, "arith.mulf", in->args[0], in->args[1]);
  MlirValue twice = o3_build2(in->builder, "arith.mulf", once, in->args[2]);
  in->results[0] = o3_build2(in->builder, "arith.addf", twice, in->args[3]);
}

static void product_body(const o3_body_args_t *in) {
  MlirValue product = o3_build2(in->builder, "arith.mulf", in->args[0], in->args[1]);
  in->results[0] = o3_build2(in->builder, "arith.addf", product, in->args[2]);
}

static MlirValue build(winograd_t *self, o3_generic_t *generic) {
  MlirValue y;
  generic->op = self->op;
  generic->num_outputs = 1;
  o3_lw_generic(self->lw, generic, &y);
  o3_op_attr_set(o3_value_def(y), "o3.node", mlirStringAttrGet(self->lw->context, o3_op_label(self->op)));
  return y;
}

static MlirValue matrix(winograd_t *self, int rows, const double *numbers) {
  float values[O3_WINOGRAD_MAX_POINTS * O3_WINOGRAD_MAX_POINTS];
  int count = rows * self->form->points;
  for (int i = 0; i < count; ++i) values[i] = (float)numbers[i];
  MlirType type = o3_tensor_type(2, (int64_t[]){rows, self->form->points}, mlirF32TypeGet(self->lw->context));
  return o3_build1_attrs(&self->lw->builder, "arith.constant", type, O3_NO_VALUES,
                         O3_ATTRS({"value", mlirDenseElementsAttrFloatGet(type, count, values)}));
}

static MlirValue zeros(winograd_t *self, MlirAffineExpr blocks) {
  MlirContext context = self->lw->context;
  MlirAffineExpr points = o3_expr_const(context, self->form->points);
  o3_shape_t shape = {.rank = 7,
                      .dims = {self->y_shape.dims[0], points, points, blocks, self->rows, self->columns,
                               o3_expr_const(context, LANES)}};
  return o3_lw_fill(self->lw, &shape, o3_lw_scalar(&self->lw->builder, mlirF32TypeGet(context), 0));
}

static MlirAffineExpr loop(const winograd_t *self, int i) {
  return mlirAffineDimExprGet(self->lw->context, i);
}

/* The position m * tile + i of the padded input. */
static MlirAffineExpr position(const winograd_t *self, int tile, int i) {
  MlirAffineExpr step = o3_expr_const(self->lw->context, self->form->tile);
  return mlirAffineAddExprGet(mlirAffineMulExprGet(loop(self, tile), step), loop(self, i));
}

static MlirValue transform_input(winograd_t *self, MlirValue x) {
  enum { N, A, B, C, TY, TX, L, I, J, LOOPS };
  MlirValue b = matrix(self, self->form->points, self->form->b);
  MlirAffineExpr exprs[] = {loop(self, N), loop(self, C), position(self, TY, I), position(self, TX, J),
                            loop(self, L)};
  o3_generic_t generic = {.iterators = "ppppppprr",
                          .num_inputs = 3,
                          .inputs = {x, b, b},
                          .outputs = {zeros(self, self->x_shape.dims[1])},
                          .maps = {mlirAffineMapGet(self->lw->context, LOOPS, 0, 5, exprs),
                                   o3_lw_projection(self->lw, LOOPS, 2, (int64_t[]){A, I}),
                                   o3_lw_projection(self->lw, LOOPS, 2, (int64_t[]){B, J}),
                                   o3_lw_projection(self->lw, LOOPS, 7, (int64_t[]){N, A, B, C, TY, TX, L})},
                          .body = transform_body,
                          .kernel = "winograd_input"};
  return build(self, &generic);
}

static MlirValue multiply(winograd_t *self, MlirValue v, MlirValue u) {
  enum { N, A, B, M, TY, TX, ML, C, CL, LOOPS };
  o3_generic_t generic = {.iterators = "ppppppprr",
                          .num_inputs = 2,
                          .inputs = {v, u},
                          .outputs = {zeros(self, self->y_shape.dims[1])},
                          .maps = {o3_lw_projection(self->lw, LOOPS, 7, (int64_t[]){N, A, B, C, TY, TX, CL}),
                                   o3_lw_projection(self->lw, LOOPS, 6, (int64_t[]){M, A, B, C, CL, ML}),
                                   o3_lw_projection(self->lw, LOOPS, 7, (int64_t[]){N, A, B, M, TY, TX, ML})},
                          .body = product_body,
                          .kernel = "winograd_product"};
  MlirValue p = build(self, &generic);
  o3_lw_blocked_channels(self->op, p);
  return p;
}

static MlirValue transform_output(winograd_t *self, MlirValue p, MlirValue y) {
  enum { N, M, OH, OW, L, A, B, LOOPS };
  MlirContext context = self->lw->context;
  MlirValue a = matrix(self, self->form->tile, self->form->a);
  MlirAffineExpr tile = o3_expr_const(context, self->form->tile);
  MlirAffineExpr products[] = {loop(self, N),
                               loop(self, A),
                               loop(self, B),
                               loop(self, M),
                               mlirAffineFloorDivExprGet(loop(self, OH), tile),
                               mlirAffineFloorDivExprGet(loop(self, OW), tile),
                               loop(self, L)};
  MlirAffineExpr rows[] = {mlirAffineModExprGet(loop(self, OH), tile), loop(self, A)};
  MlirAffineExpr columns[] = {mlirAffineModExprGet(loop(self, OW), tile), loop(self, B)};
  o3_generic_t generic = {
      .iterators = "ppppprr",
      .num_inputs = 3,
      .inputs = {p, a, a},
      .outputs = {y},
      .maps = {mlirAffineMapGet(context, LOOPS, 0, 7, products), mlirAffineMapGet(context, LOOPS, 0, 2, rows),
               mlirAffineMapGet(context, LOOPS, 0, 2, columns),
               o3_lw_projection(self->lw, LOOPS, 5, (int64_t[]){N, M, OH, OW, L})},
      .body = transform_body,
      .kernel = "winograd_output"};
  return build(self, &generic);
}

/* Tiles reach beyond the padded input where the output is no multiple of them. */
static MlirValue pad(winograd_t *self, MlirValue x) {
  MlirContext context = self->lw->context;
  const MlirAffineExpr around = o3_expr_const(context, O3_WINOGRAD_TAPS - 1);
  const MlirAffineExpr tile = o3_expr_const(context, self->form->tile);
  o3_shape_t from = self->x_shape;
  self->x_shape.dims[2] = o3_expr_add(o3_expr_mul(self->rows, tile), around);
  self->x_shape.dims[3] = o3_expr_add(o3_expr_mul(self->columns, tile), around);
  return o3_lw_blocked_surround(self->lw, x, &from, &self->x_shape, &self->window);
}

static o3_status_t find_form(MlirOperation op, const o3_winograd_t **form) {
  int64_t tile = o3_op_int(op, "tile", 0);
  *form = o3_winograd_find(tile);
  return *form ? NULL
               : o3_status_create(O3_STATUS_INVALID_MODEL,
                                  "op '%.*s': tile %lld of a winograd convolution is not 2 or 4",
                                  O3_STR_ARGS(o3_op_label(op)), (long long)tile);
}

static o3_status_t read_pads(MlirOperation op, o3_lw_window_t *window) {
  int64_t pads[4];
  if (o3_op_ints(op, "pads", pads, 4) != 4)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "op '%.*s': pads of a winograd convolution are not four",
                            O3_STR_ARGS(o3_op_label(op)));
  *window = (o3_lw_window_t){.rank = 2, .lows = {pads[0], pads[1]}, .highs = {pads[2], pads[3]}};
  return NULL;
}

o3_status_t o3_lower_winograd_blocked(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                      MlirValue *results) {
  winograd_t self = {.lw = lw, .op = op};
  O3_TRY(find_form(op, &self.form));
  O3_TRY(read_pads(op, &self.window));
  o3_lw_operand_shape(lw, op, 0, &self.x_shape);
  o3_lw_result_shape(lw, op, 0, &self.y_shape);
  MlirAffineExpr tile = o3_expr_const(lw->context, self.form->tile);
  self.rows = o3_expr_ceil_div(self.y_shape.dims[2], tile);
  self.columns = o3_expr_ceil_div(self.y_shape.dims[3], tile);
  bool biased = mlirOperationGetNumOperands(op) > 2;
  MlirValue y = o3_lw_blocked_start(lw, op, &self.y_shape, biased ? operands[2] : (MlirValue){0});
  MlirValue v = transform_input(&self, pad(&self, operands[0]));
  results[0] = transform_output(&self, multiply(&self, v, operands[1]), y);
  return NULL;
}

/* ---- Weights ---- */

enum { TAPS = O3_WINOGRAD_TAPS * O3_WINOGRAD_TAPS };

typedef struct weights {
  const o3_winograd_t *form;
  MlirValue w, matrix; /* M C 3 3; p^2 x 9: G[a][i] G[b][j] in f64 */
  int64_t outputs, channels;
} weights_t;

/* block * 16 + lane, and whether w has it; the last one that it has when not. */
static MlirValue channel(o3_builder_t *b, int block, int lane, int64_t count, MlirValue *exists) {
  MlirValue at = o3_build2(b, "arith.muli", o3_lw_index(b, block), o3_build_index(b, LANES));
  at = o3_build2(b, "arith.addi", at, o3_lw_index(b, lane));
  *exists = o3_build_cmpi(b, O3_CMPI_ULT, at, o3_build_index(b, count));
  return o3_build2(b, "arith.minui", at, o3_build_index(b, count - 1));
}

/* The loops: block of outputs, a, b, block of channels, channel, output. */
static void weight_body(const o3_body_args_t *in) {
  enum { M, A, B, C, CL, ML };
  const weights_t *self = in->context;
  o3_builder_t *b = in->builder;
  MlirType f64 = mlirF64TypeGet(b->context), f32 = mlirF32TypeGet(b->context);
  MlirValue has_output, has_channel, sum = o3_build_float(b, f64, 0);
  MlirValue m = channel(b, M, ML, self->outputs, &has_output);
  MlirValue c = channel(b, C, CL, self->channels, &has_channel);
  MlirValue row = o3_build2(b, "arith.muli", o3_lw_index(b, A), o3_build_index(b, self->form->points));
  row = o3_build2(b, "arith.addi", row, o3_lw_index(b, B));
  for (int t = 0; t < TAPS; ++t) {
    const MlirValue at[4] = {m, c, o3_build_index(b, t / O3_WINOGRAD_TAPS),
                             o3_build_index(b, t % O3_WINOGRAD_TAPS)};
    const MlirValue factor[2] = {row, o3_build_index(b, t)};
    MlirValue w = o3_build1(b, "arith.extf", f64, O3_VALUES(o3_lw_extract(b, self->w, 4, at)));
    MlirValue product = o3_build2(b, "arith.mulf", w, o3_lw_extract(b, self->matrix, 2, factor));
    sum = o3_build2(b, "arith.addf", sum, product);
  }
  MlirValue exists = o3_build2(b, "arith.andi", has_output, has_channel);
  MlirValue rounded = o3_build1(b, "arith.truncf", f32, O3_VALUES(sum));
  in->results[0] = o3_build_select(b, exists, rounded, o3_build_float(b, f32, 0));
}

static MlirValue transform_matrix(o3_lw_t *lw, const o3_winograd_t *form) {
  double values[O3_WINOGRAD_MAX_POINTS * O3_WINOGRAD_MAX_POINTS * TAPS];
  int p = form->points;
  for (int k = 0; k < p * p; ++k) {
    for (int t = 0; t < TAPS; ++t)
      values[k * TAPS + t] = form->g[k / p * O3_WINOGRAD_TAPS + t / O3_WINOGRAD_TAPS] *
                             form->g[k % p * O3_WINOGRAD_TAPS + t % O3_WINOGRAD_TAPS];
  }
  MlirType type = o3_tensor_type(2, (int64_t[]){p * p, TAPS}, mlirF64TypeGet(lw->context));
  return o3_build1_attrs(&lw->builder, "arith.constant", type, O3_NO_VALUES,
                         O3_ATTRS({"value", mlirDenseElementsAttrDoubleGet(type, p * p * TAPS, values)}));
}

o3_status_t o3_lower_winograd_weights(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                      MlirValue *results) {
  weights_t self = {.w = operands[0]};
  o3_shape_t shape;
  MlirType type = mlirValueGetType(operands[0]);
  O3_TRY(find_form(op, &self.form));
  o3_lw_result_shape(lw, op, 0, &shape);
  self.outputs = o3_type_dim(type, 0);
  self.channels = o3_type_dim(type, 1);
  self.matrix = transform_matrix(lw, self.form);
  results[0] = o3_lw_generate(lw, &shape, mlirF32TypeGet(lw->context), weight_body, &self);
  return NULL;
}
