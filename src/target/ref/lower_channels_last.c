/* Images whose channels come last (ir/ops.def). Convolutions are each one contraction:
 *
 *     conv_last       n, 1, oh, ow, m | kh, kw, c        of f32 with [columns]: marked with O3_LW_TF32
 *     depthwise_last  n, 1, oh, ow, c | kh, kw
 *
 * Padding is a copy, sums are in f32 for half precision and start at the bias.
 */
#include "base/check.h"
#include "target/ref/lower_blocked.h"

enum { N, ONE, OH, OW, M, KH, KW, C, LOOPS };

typedef struct last {
  MlirOperation op;
  o3_lw_window_t window;
  o3_shape_t x_shape, y_shape;
  MlirValue x, w, y; /* y: initial values */
  MlirType sum;      /* old element type of the sums */
  bool columns;      /* w: KH M KW C */
} last_t;

static void product_body(const o3_body_args_t *in) {
  const last_t *last = in->context;
  MlirValue x = o3_lw_convert(in->builder, in->args[0], o3_lw_old_element(last->op, 0), last->sum);
  MlirValue w = o3_lw_convert(in->builder, in->args[1], o3_lw_old_element(last->op, 1), last->sum);
  in->results[0] =
      o3_build2(in->builder, "arith.addf", o3_build2(in->builder, "arith.mulf", x, w), in->args[2]);
}

static void bias_body(const o3_body_args_t *in) {
  const last_t *last = in->context;
  in->results[0] = o3_lw_convert(in->builder, in->args[0], o3_lw_old_element(last->op, 2), last->sum);
}

static void init_sums(o3_lw_t *lw, last_t *last, const MlirValue *operands) {
  MlirType element = o3_lw_type(last->sum);
  if (mlirOperationGetNumOperands(last->op) < 3) {
    last->y = o3_lw_fill(lw, &last->y_shape, o3_lw_scalar(&lw->builder, element, 0));
    return;
  }
  o3_generic_t generic = {.op = last->op,
                          .iterators = "ppppp",
                          .num_inputs = 1,
                          .inputs = {operands[2]},
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(lw, &last->y_shape, element)},
                          .maps = {o3_lw_projection(lw, 5, 1, (int64_t[]){4}), o3_lw_identity(lw, 5)},
                          .body = bias_body,
                          .context = last};
  o3_lw_generic(lw, &generic, &last->y);
}

/* The image that windows are read from: an output of one position reads what its window covers and no more.
 */
static void surround(o3_lw_t *lw, last_t *last) {
  o3_shape_t from = last->x_shape, w_shape;
  o3_lw_operand_shape(lw, last->op, 1, &w_shape);
  for (int i = 0; i < 2; ++i) {
    int64_t kernel = 1, around = last->window.lows[i] + last->window.highs[i];
    bool known = o3_expr_is_const(w_shape.dims[i && last->columns ? 2 : i], &kernel);
    O3_ASSERT(known, "the layout pass takes constant weights only");
    MlirAffineExpr *size = &last->x_shape.dims[2 + i];
    *size = o3_expr_equals_const(last->y_shape.dims[2 + i], 1)
                ? o3_expr_const(lw->context, (kernel - 1) * last->window.dilations[i] + 1)
                : o3_expr_add(*size, o3_expr_const(lw->context, around));
  }
  last->x = o3_lw_blocked_surround(lw, last->x, &from, &last->x_shape, &last->window);
}

/* o * stride + k * dilation */
static MlirAffineExpr position(const last_t *last, MlirContext context, int i) {
  MlirAffineExpr o = mlirAffineDimExprGet(context, OH + i), k = mlirAffineDimExprGet(context, KH + i);
  return mlirAffineAddExprGet(mlirAffineMulExprGet(o, o3_expr_const(context, last->window.strides[i])),
                              mlirAffineMulExprGet(k, o3_expr_const(context, last->window.dilations[i])));
}

static MlirValue contract(o3_lw_t *lw, last_t *last, bool depthwise) {
  int loops = depthwise ? LOOPS - 1 : LOOPS;
  MlirAffineExpr xs[] = {mlirAffineDimExprGet(lw->context, N), mlirAffineDimExprGet(lw->context, ONE),
                         position(last, lw->context, 0), position(last, lw->context, 1),
                         mlirAffineDimExprGet(lw->context, depthwise ? M : C)};
  o3_generic_t generic = {
      .op = last->op,
      .iterators = depthwise ? "ppppprr" : "ppppprrr",
      .num_inputs = 2,
      .inputs = {last->x, last->w},
      .num_outputs = 1,
      .outputs = {last->y},
      .maps = {mlirAffineMapGet(lw->context, loops, 0, 5, xs),
               depthwise       ? o3_lw_projection(lw, loops, 3, (int64_t[]){KH, KW, M})
               : last->columns ? o3_lw_projection(lw, loops, 4, (int64_t[]){KH, M, KW, C})
                               : o3_lw_projection(lw, loops, 4, (int64_t[]){KH, KW, C, M}),
               o3_lw_projection(lw, loops, 5, (int64_t[]){N, ONE, OH, OW, M})},
      .body = product_body,
      .context = last,
      .kernel = "conv"};
  MlirValue y;
  o3_lw_generic(lw, &generic, &y);
  if (last->columns) o3_op_attr_set(o3_value_def(y), O3_LW_TF32, mlirUnitAttrGet(lw->context));
  return y;
}

static o3_status_t lower(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, bool depthwise,
                         MlirValue *results) {
  MlirType element = o3_lw_result_element(op, 0);
  last_t last = {.op = op, .x = operands[0], .w = operands[1], .sum = o3_lw_sum_element(element)};
  last.columns = o3_op_bool(op, "columns", false);
  o3_lw_window_read(op, &last.window);
  o3_lw_operand_shape(lw, op, 0, &last.x_shape);
  o3_lw_result_shape(lw, op, 0, &last.y_shape);
  init_sums(lw, &last, operands);
  surround(lw, &last);
  MlirValue y = contract(lw, &last, depthwise);
  results[0] = o3_lw_convert_all(lw, y, &last.y_shape, last.sum, element);
  return NULL;
}

/* ---- The ops ---- */

o3_status_t o3_lower_conv_last(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  return lower(lw, op, operands, false, results);
}

o3_status_t o3_lower_depthwise_last(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                    MlirValue *results) {
  return lower(lw, op, operands, true, results);
}
