/* Products on blocked layouts (ir/ops.def), each one contraction.
 *
 *     conv_blocked       n, [group], block of m, oh, ow, lane of m | block of c, kh, kw, lane of c
 *     ... with shuffle   n, block of m, a, b, oh, ow, lane of m | ...
 *     depthwise_blocked  n, block, oh, ow, lane | kh, kw
 *     matmul_packed      batch..., m, n | k        (weights: block n / 16, k, lane n mod 16)
 *
 * Padding is a copy, sums start at the bias.
 */
#include "target/ref/lower_blocked.h"

#include "base/check.h"

enum { LANES = O3_BLOCK_LANES };

typedef struct blocked {
  o3_lw_window_t window;
  o3_shape_t x_shape, w_shape, y_shape;
  MlirValue x, w, bias, y; /* bias: null without one */
} blocked_t;

static void product_body(const o3_body_args_t *in) {
  MlirValue product = o3_build2(in->builder, "arith.mulf", in->args[0], in->args[1]);
  in->results[0] = o3_build2(in->builder, "arith.addf", product, in->args[2]);
}

static void same_body(const o3_body_args_t *in) { in->results[0] = in->args[0]; }

/* y, of |shape|, full of the bias, whose dimensions are y's |dims|, or zeros. */
static MlirValue start(o3_lw_t *lw, const o3_shape_t *shape, MlirOperation op, MlirValue bias, int num_dims,
                       const int64_t *dims) {
  static const char ITERATORS[] = "pppppppp";
  MlirType element = o3_lw_new_element(op, 0);
  if (mlirValueIsNull(bias)) return o3_lw_fill(lw, shape, o3_lw_scalar(&lw->builder, element, 0));
  o3_generic_t generic = {
      .op = op,
      .iterators = ITERATORS + sizeof(ITERATORS) - 1 - shape->rank,
      .num_inputs = 1,
      .inputs = {bias},
      .num_outputs = 1,
      .outputs = {o3_lw_empty(lw, shape, element)},
      .maps = {o3_lw_projection(lw, shape->rank, num_dims, dims), o3_lw_identity(lw, shape->rank)},
      .body = same_body};
  MlirValue y;
  o3_lw_generic(lw, &generic, &y);
  return y;
}

void o3_lw_blocked_channels(MlirOperation op, MlirValue product) {
  MlirAttribute channels = o3_op_attr(op, "channels");
  if (!mlirAttributeIsNull(channels)) o3_op_attr_set(o3_value_def(product), "o3.channels", channels);
}

MlirValue o3_lw_blocked_start(o3_lw_t *lw, MlirOperation op, const o3_shape_t *shape, MlirValue bias) {
  return start(lw, shape, op, bias, shape->rank - 3, (int64_t[]){1, 4});
}

typedef struct halo {
  int rank; /* 5; 4 for images without lanes */
  MlirValue x, sizes[2], zero;
  const o3_lw_window_t *window;
} halo_t;

/* Read at the nearest position, and not used where that is another. */
static void halo_body(const o3_body_args_t *in) {
  const halo_t *halo = in->context;
  o3_builder_t *b = in->builder;
  MlirValue position[5], first = o3_build_index(b, 0), one = o3_build_index(b, 1), inside = {0};
  for (int i = 0; i < halo->rank; ++i) position[i] = o3_lw_index(b, i);
  for (int i = 0; i < 2; ++i) {
    MlirValue at = o3_build2(b, "arith.subi", position[2 + i], o3_build_index(b, halo->window->lows[i]));
    MlirValue last = o3_build2(b, "arith.subi", halo->sizes[i], one);
    MlirValue fits = o3_build_cmpi(b, O3_CMPI_ULT, at, halo->sizes[i]);
    inside = i ? o3_build2(b, "arith.andi", inside, fits) : fits;
    position[2 + i] = o3_build2(b, "arith.maxsi", o3_build2(b, "arith.minsi", at, last), first);
  }
  in->results[0] = o3_build_select(b, inside, o3_lw_extract(b, halo->x, halo->rank, position), halo->zero);
}

/* The size of x that windows are read from. A single window reads what it covers and no more: upstream drops
 * its dim, and wants the sizes to agree then. */
static MlirAffineExpr padded_size(const o3_lw_t *lw, const blocked_t *self, int i, int64_t kernel) {
  const o3_lw_window_t *window = &self->window;
  if (o3_expr_equals_const(self->y_shape.dims[2 + i], 1))
    return o3_expr_const(lw->context, (kernel - 1) * window->dilations[i] + 1);
  MlirAffineExpr around = o3_expr_const(lw->context, window->lows[i] + window->highs[i]);
  return o3_expr_add(self->x_shape.dims[2 + i], around);
}

/* One op that writes each element once. */
MlirValue o3_lw_blocked_surround(o3_lw_t *lw, MlirValue x, const o3_shape_t *from, const o3_shape_t *to,
                                 const o3_lw_window_t *window) {
  MlirType element = o3_type_element(mlirValueGetType(x));
  halo_t halo = {
      .rank = from->rank, .x = x, .window = window, .zero = o3_lw_scalar(&lw->builder, element, 0)};
  bool same = true;
  for (int i = 0; i < 2; ++i) {
    halo.sizes[i] = o3_lw_size(lw, from->dims[2 + i]);
    same = same && window->lows[i] == 0 && o3_expr_equal(to->dims[2 + i], from->dims[2 + i]);
  }
  return same ? x : o3_lw_generate(lw, to, element, halo_body, &halo);
}

MlirValue o3_lw_blocked_border(o3_lw_t *lw, MlirValue x, const o3_shape_t *shape,
                               const o3_lw_window_t *window) {
  o3_shape_t padded = *shape;
  for (int i = 0; i < 2; ++i) {
    MlirAffineExpr around = o3_expr_const(lw->context, window->lows[i] + window->highs[i]);
    padded.dims[2 + i] = o3_expr_add(shape->dims[2 + i], around);
  }
  return o3_lw_blocked_surround(lw, x, shape, &padded, window);
}

/* x: N x blocks x H x W x lanes, with a border of zeros. |kernel| is the first dimension of the window in w.
 */
static void pad(o3_lw_t *lw, blocked_t *self, int kernel) {
  o3_shape_t plain = self->x_shape;
  for (int i = 0; i < 2; ++i) {
    int64_t size;
    bool known = o3_expr_is_const(self->w_shape.dims[kernel + i], &size);
    O3_ASSERT(known, "the layout pass takes constant weights only");
    self->x_shape.dims[2 + i] = padded_size(lw, self, i, size);
  }
  self->x = o3_lw_blocked_surround(lw, self->x, &plain, &self->x_shape, &self->window);
}

static void read(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, int kernel, blocked_t *self) {
  *self = (blocked_t){.x = operands[0], .w = operands[1]};
  if (mlirOperationGetNumOperands(op) > 2) self->bias = operands[2];
  o3_lw_window_read(op, &self->window);
  o3_lw_operand_shape(lw, op, 0, &self->x_shape);
  o3_lw_operand_shape(lw, op, 1, &self->w_shape);
  o3_lw_result_shape(lw, op, 0, &self->y_shape);
  pad(lw, self, kernel);
}

/* ---- Loops ---- */

typedef struct loops {
  MlirContext context;
  int count; /* of all */
} loops_t;

static MlirAffineExpr loop(const loops_t *loops, int i) { return mlirAffineDimExprGet(loops->context, i); }

/* o * stride + k * dilation */
static MlirAffineExpr position(const loops_t *loops, const o3_lw_window_t *window, int i, int o, int k) {
  MlirAffineExpr stride = o3_expr_const(loops->context, window->strides[i]);
  MlirAffineExpr dilation = o3_expr_const(loops->context, window->dilations[i]);
  return mlirAffineAddExprGet(mlirAffineMulExprGet(loop(loops, o), stride),
                              mlirAffineMulExprGet(loop(loops, k), dilation));
}

static MlirAffineMap map(const loops_t *loops, int count, MlirAffineExpr *exprs) {
  return mlirAffineMapGet(loops->context, loops->count, 0, count, exprs);
}

static MlirValue contract(o3_lw_t *lw, MlirOperation op, const blocked_t *self, const char *iterators,
                          const MlirAffineMap *maps) {
  o3_generic_t generic = {.op = op,
                          .iterators = iterators,
                          .num_inputs = 2,
                          .inputs = {self->x, self->w},
                          .num_outputs = 1,
                          .outputs = {self->y},
                          .maps = {maps[0], maps[1], maps[2]},
                          .body = product_body,
                          .kernel = "blocked"};
  MlirValue y;
  o3_lw_generic(lw, &generic, &y);
  o3_lw_blocked_channels(op, y);
  return y;
}

static MlirValue conv(o3_lw_t *lw, MlirOperation op, blocked_t *self) {
  loops_t l = {lw->context, 9};
  enum { N, M, OH, OW, ML, C, KH, KW, CL };
  self->y = o3_lw_blocked_start(lw, op, &self->y_shape, self->bias);
  const o3_lw_window_t *window = &self->window;
  MlirAffineExpr h = position(&l, window, 0, OH, KH), w = position(&l, window, 1, OW, KW);
  MlirAffineExpr xs[] = {loop(&l, N), loop(&l, C), h, w, loop(&l, CL)};
  MlirAffineExpr ws[] = {loop(&l, M), loop(&l, C), loop(&l, KH), loop(&l, KW), loop(&l, CL), loop(&l, ML)};
  MlirAffineMap maps[] = {map(&l, 5, xs), map(&l, 6, ws),
                          o3_lw_projection(lw, 9, 5, (int64_t[]){N, M, OH, OW, ML})};
  return contract(lw, op, self, "ppppprrrr", maps);
}

/* Dimension |dim| as |outer| times what is left. */
static void split_shape(MlirContext context, o3_shape_t *shape, int dim, int64_t outer) {
  for (int i = shape->rank++; i > dim; --i) shape->dims[i] = shape->dims[i - 1];
  shape->dims[dim] = o3_expr_const(context, outer);
  shape->dims[dim + 1] = o3_expr_floor_div(shape->dims[dim + 1], shape->dims[dim]);
}

static MlirValue conv_grouped(o3_lw_t *lw, MlirOperation op, blocked_t *self, int64_t group) {
  loops_t l = {lw->context, 10};
  enum { N, G, M, OH, OW, ML, C, KH, KW, CL };
  const o3_lw_window_t *window = &self->window;
  self->x = o3_lw_split_dim(lw, self->x, 1, group, &self->x_shape);
  self->w = o3_lw_split_dim(lw, self->w, 0, group, &self->w_shape);
  split_shape(lw->context, &self->y_shape, 1, group);
  if (!mlirValueIsNull(self->bias)) {
    o3_shape_t shape = {.rank = 2,
                        .dims = {o3_expr_mul(self->y_shape.dims[1], self->y_shape.dims[2]),
                                 o3_expr_const(lw->context, LANES)}};
    self->bias = o3_lw_split_dim(lw, self->bias, 0, group, &shape);
  }
  self->y = start(lw, &self->y_shape, op, self->bias, 3, (int64_t[]){G, M, ML});
  MlirAffineExpr h = position(&l, window, 0, OH, KH), w = position(&l, window, 1, OW, KW);
  MlirAffineExpr xs[] = {loop(&l, N), loop(&l, G), loop(&l, C), h, w, loop(&l, CL)};
  MlirAffineExpr ws[] = {loop(&l, G),  loop(&l, M),  loop(&l, C), loop(&l, KH),
                         loop(&l, KW), loop(&l, CL), loop(&l, ML)};
  MlirAffineMap maps[] = {map(&l, 6, xs), map(&l, 7, ws),
                          o3_lw_projection(lw, 10, 6, (int64_t[]){N, G, M, OH, OW, ML})};
  MlirValue y = contract(lw, op, self, "pppppprrrr", maps);
  return o3_lw_join_dims(lw, y, 1, &self->y_shape);
}

/* Weights have the blocks (m, a, b); phases a and b lie between the positions of y, N M OH a OW b lanes. */
static MlirValue conv_shuffled(o3_lw_t *lw, MlirOperation op, blocked_t *self, const int64_t *phases) {
  loops_t l = {lw->context, 11};
  enum { N, M, A, B, OH, OW, ML, C, KH, KW, CL };
  const o3_lw_window_t *window = &self->window;
  o3_shape_t *shape = &self->y_shape;
  int64_t blocks = 1;
  bool known = o3_expr_is_const(shape->dims[1], &blocks);
  O3_ASSERT(known, "the layout pass takes constant weights only");
  self->w = o3_lw_split_dim(lw, self->w, 0, blocks, &self->w_shape);
  self->w = o3_lw_split_dim(lw, self->w, 1, phases[0], &self->w_shape);
  for (int i = 1; i >= 0; --i) {
    split_shape(lw->context, shape, 2 + i, phases[i]);
    MlirAffineExpr phase = shape->dims[2 + i];
    shape->dims[2 + i] = shape->dims[3 + i];
    shape->dims[3 + i] = phase;
  }
  self->y = start(lw, shape, op, self->bias, 2, (int64_t[]){1, 6});
  MlirAffineExpr h = position(&l, window, 0, OH, KH), w = position(&l, window, 1, OW, KW);
  MlirAffineExpr xs[] = {loop(&l, N), loop(&l, C), h, w, loop(&l, CL)};
  MlirAffineExpr ws[] = {loop(&l, M),  loop(&l, A),  loop(&l, B),  loop(&l, C),
                         loop(&l, KH), loop(&l, KW), loop(&l, CL), loop(&l, ML)};
  MlirAffineMap maps[] = {map(&l, 5, xs), map(&l, 8, ws),
                          o3_lw_projection(lw, 11, 7, (int64_t[]){N, M, OH, A, OW, B, ML})};
  MlirValue y = contract(lw, op, self, "ppppppprrrr", maps);
  y = o3_lw_join_dims(lw, y, 2, shape);
  return o3_lw_join_dims(lw, y, 3, shape);
}

o3_status_t o3_lower_conv_blocked(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                  MlirValue *results) {
  blocked_t self;
  int64_t group = o3_op_int(op, "group", 1), phases[2];
  read(lw, op, operands, 2, &self);
  if (o3_op_ints(op, "shuffle", phases, 2) == 2) {
    results[0] = conv_shuffled(lw, op, &self, phases);
  } else {
    results[0] = group == 1 ? conv(lw, op, &self) : conv_grouped(lw, op, &self, group);
  }
  return NULL;
}

o3_status_t o3_lower_depthwise_blocked(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                       MlirValue *results) {
  loops_t l = {lw->context, 7};
  enum { N, C, OH, OW, L, KH, KW };
  blocked_t self;
  read(lw, op, operands, 1, &self);
  self.y = o3_lw_blocked_start(lw, op, &self.y_shape, self.bias);
  MlirAffineExpr h = position(&l, &self.window, 0, OH, KH), w = position(&l, &self.window, 1, OW, KW);
  MlirAffineExpr xs[] = {loop(&l, N), loop(&l, C), h, w, loop(&l, L)};
  MlirAffineExpr ws[] = {loop(&l, C), loop(&l, KH), loop(&l, KW), loop(&l, L)};
  MlirAffineMap maps[] = {map(&l, 5, xs), map(&l, 4, ws),
                          o3_lw_projection(lw, 7, 5, (int64_t[]){N, C, OH, OW, L})};
  results[0] = contract(lw, op, &self, "ppppprr", maps);
  return NULL;
}

/* ---- Matrix products ---- */

o3_status_t o3_lower_matmul_packed(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                   MlirValue *results) {
  static const char ITERATORS[] = "ppppppppppppppppr";
  blocked_t self = {.x = operands[0], .w = operands[1]};
  o3_lw_result_shape(lw, op, 0, &self.y_shape);
  int rank = self.y_shape.rank;
  loops_t l = {lw->context, rank + 1};
  self.y = o3_lw_fill(lw, &self.y_shape, o3_lw_scalar(&lw->builder, o3_lw_new_element(op, 0), 0));
  MlirAffineExpr lanes = o3_expr_const(lw->context, LANES), n = loop(&l, rank - 1), xs[O3_IR_MAX_RANK],
                 ys[O3_IR_MAX_RANK];
  MlirAffineExpr ws[] = {mlirAffineFloorDivExprGet(n, lanes), loop(&l, rank), mlirAffineModExprGet(n, lanes)};
  for (int i = 0; i < rank; ++i) {
    ys[i] = loop(&l, i);
    xs[i] = i < rank - 1 ? ys[i] : loop(&l, rank);
  }
  MlirAffineMap maps[] = {map(&l, rank, xs), map(&l, 3, ws), map(&l, rank, ys)};
  results[0] = contract(lw, op, &self, ITERATORS + O3_IR_MAX_RANK - rank, maps);
  return NULL;
}
