/* Convolutions: padding as a copy, then one contraction with a loop for each of
 *
 *     n, group, output channel, output position... | input channel, kernel position...
 *
 * where group is there only when there are several, and a channel loop only when it has more than one turn.
 */
#include "base/check.h"
#include "target/ref/window.h"

enum { NO_LOOP = -1, MAX_LOOPS = 2 * O3_IR_MAX_RANK };

typedef struct conv {
  MlirOperation op;
  o3_lw_window_t window;
  int64_t group;
  bool transposed;
  bool depthwise;                       /* one input channel a group */
  MlirType sum;                         /* old element type of the sum */
  o3_shape_t x_shape, w_shape, y_shape; /* of the operands as they are now */
  MlirValue x, w, y;                    /* y: initial values */
  int64_t shifts[O3_IR_MAX_RANK];       /* transposed: added to o - k * dilation */
  int g, m, o, c, k, loops;             /* numbers of the loops; o and k: of the first of several */
} conv_t;

/* sum + x * w in the type of the sum. */
static void conv_body(const o3_body_args_t *in) {
  const conv_t *conv = in->context;
  MlirValue x = o3_lw_convert(in->builder, in->args[0], o3_lw_old_element(conv->op, 0), conv->sum);
  MlirValue w = o3_lw_convert(in->builder, in->args[1], o3_lw_old_element(conv->op, 1), conv->sum);
  bool is_float = o3_type_is_float(conv->sum);
  MlirValue product = o3_build2(in->builder, is_float ? "arith.mulf" : "arith.muli", x, w);
  in->results[0] = o3_build2(in->builder, is_float ? "arith.addf" : "arith.addi", product, in->args[2]);
}

/* ---- Operands ---- */

static void bias_body(const o3_body_args_t *in) {
  const conv_t *conv = in->context;
  in->results[0] = o3_lw_convert(in->builder, in->args[0], o3_lw_old_element(conv->op, 2), conv->sum);
}

/* Sums start at the bias. */
static void init_sums(o3_lw_t *lw, conv_t *conv, const MlirValue *operands) {
  MlirType element = o3_lw_type(conv->sum);
  if (mlirOperationGetNumOperands(conv->op) < 3) {
    conv->y = o3_lw_fill(lw, &conv->y_shape, o3_lw_scalar(&lw->builder, element, 0));
    return;
  }
  int rank = conv->y_shape.rank;
  o3_generic_t generic = {.op = conv->op,
                          .iterators = &"pppppppppppppppp"[O3_IR_MAX_RANK - rank],
                          .num_inputs = 1,
                          .inputs = {operands[2]},
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(lw, &conv->y_shape, element)},
                          .maps = {o3_lw_projection(lw, rank, 1, (int64_t[]){1}), o3_lw_identity(lw, rank)},
                          .body = bias_body,
                          .context = conv};
  o3_lw_generic(lw, &generic, &conv->y);
}

static int64_t at_least_zero(int64_t value) { return value < 0 ? 0 : value; }

/* Transposed: x with stride - 1 zeros between neighbours, padded so that each o + pad - k * dilation is
 * inside. */
static void spread_input(o3_lw_t *lw, conv_t *conv) {
  o3_lw_spread_t spread = {.steps = {1, 1}};
  int64_t output_padding[O3_IR_MAX_RANK] = {0};
  o3_op_ints(conv->op, "output_padding", output_padding, O3_IR_MAX_RANK);
  for (int i = 0; i < conv->window.rank; ++i) {
    const o3_lw_window_t *window = &conv->window;
    int64_t kernel = 1;
    bool known = o3_expr_is_const(conv->w_shape.dims[2 + i], &kernel);
    O3_ASSERT(known || !conv->transposed, "the converter takes static kernels only");
    int64_t reach = (kernel - 1) * window->dilations[i];
    spread.steps[2 + i] = conv->transposed ? window->strides[i] : 1;
    spread.lows[2 + i] = conv->transposed ? at_least_zero(reach - window->lows[i]) : window->lows[i];
    spread.highs[2 + i] =
        conv->transposed ? at_least_zero(reach - window->highs[i] + output_padding[i]) : window->highs[i];
    conv->shifts[i] = window->lows[i] + spread.lows[2 + i];
  }
  MlirValue zero = o3_lw_scalar(&lw->builder, o3_type_element(mlirValueGetType(conv->x)), 0);
  conv->x = o3_lw_spread(lw, conv->x, &spread, zero, &conv->x_shape);
}

/* Gives groups a dimension of their own, and takes away that of a single input channel. */
static void split_groups(o3_lw_t *lw, conv_t *conv) {
  bool one_each = o3_expr_equals_const(conv->y_shape.dims[1], conv->group);
  if (conv->depthwise) {
    conv->w = o3_lw_join_dims(lw, conv->w, 0, &conv->w_shape);
    if (one_each) return;
  } else {
    conv->x = o3_lw_split_dim(lw, conv->x, 1, conv->group, &conv->x_shape);
  }
  conv->w = o3_lw_split_dim(lw, conv->w, 0, conv->group, &conv->w_shape);
  conv->y = o3_lw_split_dim(lw, conv->y, 1, conv->group, &conv->y_shape);
}

/* ---- Loops ---- */

static void number_loops(conv_t *conv) {
  int next = 1;
  bool has_m = !conv->depthwise || conv->y_shape.rank > conv->window.rank + 2;
  conv->g = conv->group > 1 ? next++ : NO_LOOP;
  conv->m = has_m ? next++ : NO_LOOP;
  conv->o = next;
  next += conv->window.rank;
  conv->c = conv->depthwise ? NO_LOOP : next++;
  conv->k = next;
  conv->loops = next + conv->window.rank;
}

typedef struct exprs {
  MlirContext context;
  int count;
  MlirAffineExpr items[O3_IR_MAX_RANK];
} exprs_t;

static void push(exprs_t *exprs, MlirAffineExpr expr) { exprs->items[exprs->count++] = expr; }

static void push_loop(exprs_t *exprs, int loop) {
  if (loop != NO_LOOP) push(exprs, mlirAffineDimExprGet(exprs->context, loop));
}

static void push_loops(exprs_t *exprs, int first, int count) {
  for (int i = 0; i < count; ++i) push_loop(exprs, first + i);
}

static MlirAffineMap finish(const conv_t *conv, exprs_t *exprs) {
  return mlirAffineMapGet(exprs->context, conv->loops, 0, exprs->count, exprs->items);
}

/* o * stride + k * dilation; transposed: o - k * dilation + shift. */
static MlirAffineExpr position(const conv_t *conv, MlirContext context, int i) {
  MlirAffineExpr o = mlirAffineDimExprGet(context, conv->o + i),
                 k = mlirAffineDimExprGet(context, conv->k + i);
  int64_t stride = conv->transposed ? 1 : conv->window.strides[i],
          shift = conv->transposed ? conv->shifts[i] : 0;
  int64_t dilation = conv->transposed ? -conv->window.dilations[i] : conv->window.dilations[i];
  MlirAffineExpr from_o = mlirAffineMulExprGet(o, o3_expr_const(context, stride));
  MlirAffineExpr from_k = mlirAffineMulExprGet(k, o3_expr_const(context, dilation));
  MlirAffineExpr sum = mlirAffineAddExprGet(from_o, from_k);
  return shift ? mlirAffineAddExprGet(sum, o3_expr_const(context, shift)) : sum;
}

static MlirAffineMap x_map(const conv_t *conv, MlirContext context) {
  exprs_t exprs = {.context = context};
  push_loop(&exprs, 0);
  push_loop(&exprs, conv->g);
  push_loop(&exprs, conv->c);
  for (int i = 0; i < conv->window.rank; ++i) push(&exprs, position(conv, context, i));
  return finish(conv, &exprs);
}

static MlirAffineMap w_map(const conv_t *conv, MlirContext context) {
  exprs_t exprs = {.context = context};
  push_loop(&exprs, conv->g);
  push_loop(&exprs, conv->transposed ? conv->c : conv->m);
  push_loop(&exprs, conv->transposed ? conv->m : conv->c);
  push_loops(&exprs, conv->k, conv->window.rank);
  return finish(conv, &exprs);
}

static MlirAffineMap y_map(const conv_t *conv, MlirContext context) {
  exprs_t exprs = {.context = context};
  push_loop(&exprs, 0);
  push_loop(&exprs, conv->g);
  push_loop(&exprs, conv->m);
  push_loops(&exprs, conv->o, conv->window.rank);
  return finish(conv, &exprs);
}

static MlirValue contract(o3_lw_t *lw, conv_t *conv) {
  char iterators[MAX_LOOPS + 1] = {0};
  number_loops(conv);
  int first_reduction = conv->o + conv->window.rank;
  for (int i = 0; i < conv->loops; ++i) iterators[i] = i < first_reduction ? 'p' : 'r';
  o3_generic_t generic = {
      .op = conv->op,
      .iterators = iterators,
      .num_inputs = 2,
      .inputs = {conv->x, conv->w},
      .num_outputs = 1,
      .outputs = {conv->y},
      .maps = {x_map(conv, lw->context), w_map(conv, lw->context), y_map(conv, lw->context)},
      .body = conv_body,
      .context = conv,
      .kernel = "conv"};
  MlirValue y;
  o3_lw_generic(lw, &generic, &y);
  return y;
}

/* ---- 1x1 ---- */

/* A kernel of one position that neither skips nor pads. */
static bool is_pointwise(const conv_t *conv) {
  if (conv->group != 1 || conv->transposed) return false;
  for (int i = 0; i < conv->window.rank; ++i) {
    bool plain = conv->window.strides[i] == 1 && conv->window.lows[i] == 0 && conv->window.highs[i] == 0;
    if (!plain || !o3_expr_equals_const(conv->w_shape.dims[2 + i], 1)) return false;
  }
  return true;
}

/* w (m, c) times x (n, c, positions): a matrix product for each n. */
static MlirValue contract_pointwise(o3_lw_t *lw, conv_t *conv) {
  while (conv->x_shape.rank > 3) conv->x = o3_lw_join_dims(lw, conv->x, 2, &conv->x_shape);
  while (conv->y_shape.rank > 3) conv->y = o3_lw_join_dims(lw, conv->y, 2, &conv->y_shape);
  while (conv->w_shape.rank > 2) conv->w = o3_lw_join_dims(lw, conv->w, 1, &conv->w_shape);
  o3_generic_t generic = {.op = conv->op,
                          .iterators = "pppr",
                          .num_inputs = 2,
                          .inputs = {conv->x, conv->w},
                          .num_outputs = 1,
                          .outputs = {conv->y},
                          .maps = {o3_lw_projection(lw, 4, 3, (int64_t[]){0, 3, 2}),
                                   o3_lw_projection(lw, 4, 2, (int64_t[]){1, 3}),
                                   o3_lw_projection(lw, 4, 3, (int64_t[]){0, 1, 2})},
                          .body = conv_body,
                          .context = conv,
                          .kernel = "matmul"};
  MlirValue y;
  o3_lw_generic(lw, &generic, &y);
  return y;
}

/* ---- The ops ---- */

/* The result in its own shape: groups joined, or positions split. */
static MlirValue restore(o3_lw_t *lw, MlirValue y, o3_shape_t *shape, const o3_shape_t *whole) {
  if (shape->rank > whole->rank) return o3_lw_join_dims(lw, y, 1, shape);
  return shape->rank < whole->rank ? o3_lw_unjoin_dims(lw, y, 2, whole) : y;
}

static void lower(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, bool transposed,
                  MlirValue *results) {
  conv_t conv = {.op = op,
                 .group = o3_op_int(op, "group", 1),
                 .transposed = transposed,
                 .x = operands[0],
                 .w = operands[1]};
  o3_shape_t whole;
  o3_lw_window_read(op, &conv.window);
  o3_lw_operand_shape(lw, op, 0, &conv.x_shape);
  o3_lw_operand_shape(lw, op, 1, &conv.w_shape);
  o3_lw_result_shape(lw, op, 0, &conv.y_shape);
  whole = conv.y_shape;
  conv.depthwise = !transposed && conv.group > 1 && o3_expr_equals_const(conv.w_shape.dims[1], 1);
  conv.sum = o3_lw_sum_element(o3_lw_result_element(op, 0));
  init_sums(lw, &conv, operands);
  MlirValue y;
  if (lw->env->opt_level > 0 && is_pointwise(&conv)) {
    y = contract_pointwise(lw, &conv);
  } else {
    spread_input(lw, &conv);
    if (conv.group > 1) split_groups(lw, &conv);
    y = contract(lw, &conv);
  }
  y = o3_lw_convert_all(lw, y, &conv.y_shape, conv.sum, o3_lw_result_element(op, 0));
  results[0] = restore(lw, y, &conv.y_shape, &whole);
}

o3_status_t o3_lower_conv(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  lower(lw, op, operands, false, results);
  return NULL;
}

o3_status_t o3_lower_conv_transpose(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                    MlirValue *results) {
  lower(lw, op, operands, true, results);
  return NULL;
}
