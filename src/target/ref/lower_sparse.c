/* Products with sparse weights (analysis/sparse_storage.h): one linalg.generic over the result, whose body is
 * a loop over the entries of its row. Its o3.kernel is "sparse", and o3.sparse says how X is walked.
 *
 *     conv_sparse     n, block of m, oh, ow, lane of m
 *     matmul_sparse   batch..., m, n; with compressed rows m, n
 */
#include "target/ref/lower_blocked.h"

#include "base/check.h"

enum { LANES = O3_BLOCK_LANES, CHANNEL_BITS = 16, WINDOW_BITS = 8, PLACE_BITS = 4 };

typedef struct sparse {
  MlirValue x, values, rows, columns;
  int rank;                     /* of the result */
  int64_t lanes, depth;         /* of an entry; 1 x 1: the values have one dimension */
  int64_t parts;                /* N:M: of the depth; 0 for other formats */
  const o3_lw_window_t *window; /* NULL: a matrix product */
  int64_t panel;                /* rows of the matrix in a panel of X; 0: X is the matrix */
  bool is_pointwise;            /* X has the result's height and width */
} sparse_t;

/* ---- The body ---- */

typedef struct entry {
  const sparse_t *self;
  o3_builder_t *builder;
  MlirValue index;          /* of the entry */
  MlirValue channel, at[2]; /* first input and the place in the window */
  MlirValue lane;
  MlirValue loops[O3_IR_MAX_RANK]; /* where the element of the result is */
} entry_t;

static MlirValue bits(o3_builder_t *b, MlirValue value, int from, int count) {
  MlirType i32 = mlirIntegerTypeGet(b->context, 32);
  if (from) value = o3_build2(b, "arith.shrui", value, o3_build_int(b, i32, from));
  value = o3_build2(b, "arith.andi", value, o3_build_int(b, i32, (1 << count) - 1));
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(value));
}

static MlirValue binary(o3_builder_t *b, const char *op, MlirValue x, int64_t constant) {
  return o3_build2(b, op, x, o3_build_index(b, constant));
}

/* Of a matrix, or of one in panels of rows. */
static void matrix_position(const entry_t *entry, o3_builder_t *b, MlirValue channel, MlirValue *position) {
  const sparse_t *self = entry->self;
  position[self->rank - 1] = channel;
  if (!self->panel) return;
  position[0] = binary(b, "arith.divui", entry->loops[0], self->panel);
  position[2] = binary(b, "arith.remui", entry->loops[0], self->panel);
}

static void positions(const entry_t *entry, o3_builder_t *b, MlirValue channel, MlirValue *position) {
  const sparse_t *self = entry->self;
  for (int i = 0; i < self->rank; ++i) position[i] = entry->loops[i];
  if (!self->window) {
    matrix_position(entry, b, channel, position);
    return;
  }
  position[1] = self->rank == 5 ? binary(b, "arith.divui", channel, LANES) : channel;
  if (self->rank == 5) position[4] = binary(b, "arith.remui", channel, LANES);
  for (int i = 0; i < 2; ++i) {
    MlirValue start = binary(b, "arith.muli", position[2 + i], self->window->strides[i]);
    MlirValue step = binary(b, "arith.muli", entry->at[i], self->window->dilations[i]);
    position[2 + i] = o3_build2(b, "arith.addi", start, step);
  }
}

/* Which of the entry's inputs number |k| of this lane is of. */
static MlirValue place_of_group(const entry_t *entry, o3_builder_t *b, MlirValue k) {
  MlirValue word = binary(b, "arith.addi", binary(b, "arith.muli", k, 2), 1);
  MlirValue at[2] = {entry->index,
                     o3_build2(b, "arith.addi", word, binary(b, "arith.remui", entry->lane, 2))};
  MlirValue places = o3_lw_extract(b, entry->self->columns, 2, at);
  MlirValue bit = binary(b, "arith.muli", binary(b, "arith.divui", entry->lane, 2), PLACE_BITS);
  MlirValue shift = o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 32), O3_VALUES(bit));
  return bits(b, o3_build2(b, "arith.shrui", places, shift), 0, PLACE_BITS);
}

static o3_status_t add_product(o3_builder_t *b, void *context, MlirValue k, const MlirValue *carried,
                               MlirValue *next) {
  const entry_t *entry = context;
  const sparse_t *self = entry->self;
  MlirValue position[O3_IR_MAX_RANK], place[4] = {entry->index, k, entry->lane}, input = k;
  if (self->parts) {
    input = place_of_group(entry, b, k);
    place[1] = binary(b, "arith.divui", k, self->depth / self->parts);
    place[2] = binary(b, "arith.remui", k, self->depth / self->parts);
    place[3] = entry->lane;
  }
  positions(entry, b, o3_build2(b, "arith.addi", entry->channel, input), position);
  MlirValue x = o3_lw_extract(b, self->x, self->panel ? 3 : self->rank, position);
  MlirValue w = o3_lw_extract(b, self->values,
                              self->lanes * self->depth == 1 ? 1
                              : self->parts                  ? 4
                                                             : 3,
                              place);
  next[0] = o3_build2(b, "arith.addf", carried[0], o3_build2(b, "arith.mulf", x, w));
  return NULL;
}

static o3_status_t add_entry(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                             MlirValue *next) {
  entry_t entry = *(const entry_t *)context;
  const MlirValue at[2] = {index, o3_build_index(b, 0)};
  MlirValue column = o3_lw_extract(b, entry.self->columns, entry.self->parts ? 2 : 1, at);
  entry.index = index;
  entry.channel = bits(b, column, 0, CHANNEL_BITS);
  entry.at[0] = bits(b, column, CHANNEL_BITS, WINDOW_BITS);
  entry.at[1] = bits(b, column, CHANNEL_BITS + WINDOW_BITS, WINDOW_BITS);
  o3_for_t loop = {.lower = o3_build_index(b, 0),
                   .upper = o3_build_index(b, entry.self->depth),
                   .step = o3_build_index(b, 1),
                   .num_carried = 1,
                   .inits = carried,
                   .body = add_product,
                   .context = &entry};
  return o3_build_for(b, &loop, next);
}

/* The row of this element of the result, and its lane in it. */
static MlirValue row_of(const sparse_t *self, o3_builder_t *b, const MlirValue *loops, MlirValue *lane) {
  MlirValue output = loops[self->window ? 1 : self->rank - 1];
  if (self->rank == 5 && self->window)
    output = o3_build2(b, "arith.addi", binary(b, "arith.muli", output, LANES), loops[4]);
  *lane = binary(b, "arith.remui", output, self->lanes);
  return binary(b, "arith.divui", output, self->lanes);
}

static MlirValue row_limit(const sparse_t *self, o3_builder_t *b, MlirValue row) {
  MlirValue limit = o3_lw_extract(b, self->rows, 1, &row);
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(limit));
}

static void body(const o3_body_args_t *in) {
  const sparse_t *self = in->context;
  o3_builder_t *b = in->builder;
  entry_t entry = {.self = self};
  for (int i = 0; i < self->rank; ++i) entry.loops[i] = o3_lw_index(b, i);
  MlirValue row = row_of(self, b, entry.loops, &entry.lane);
  o3_for_t loop = {.lower = row_limit(self, b, row),
                   .upper = row_limit(self, b, binary(b, "arith.addi", row, 1)),
                   .step = o3_build_index(b, 1),
                   .num_carried = 1,
                   .inits = in->args,
                   .body = add_entry,
                   .context = &entry};
  o3_status_t status = o3_build_for(b, &loop, in->results);
  O3_ASSERT(!status, "no body of the loops fails");
}

/* ---- The op ---- */

static void read_entries(sparse_t *self, const MlirValue *operands) {
  MlirType values = mlirValueGetType(operands[1]);
  int rank = o3_type_rank(values);
  self->values = operands[1];
  self->rows = operands[2];
  self->columns = operands[3];
  self->parts = rank == 4 ? o3_type_dim(values, 1) : 0;
  self->depth = rank == 4 ? self->parts * o3_type_dim(values, 2) : rank == 3 ? o3_type_dim(values, 1) : 1;
  self->lanes = rank > 1 ? o3_type_dim(values, rank - 1) : 1;
}

static MlirValue build(o3_lw_t *lw, MlirOperation op, sparse_t *self, MlirValue initial) {
  static const char ITERATORS[] = "pppppppppppppppp";
  o3_generic_t generic = {.op = op,
                          .iterators = ITERATORS + O3_IR_MAX_RANK - self->rank,
                          .num_outputs = 1,
                          .outputs = {initial},
                          .maps = {o3_lw_identity(lw, self->rank)},
                          .body = body,
                          .context = self,
                          .kernel = "sparse"};
  MlirValue y;
  o3_lw_generic(lw, &generic, &y);
  const int64_t none[2] = {0};
  const int64_t *strides = self->window ? self->window->strides : none;
  const int64_t *dilations = self->window ? self->window->dilations : none;
  const int64_t form[] = {self->lanes,  self->depth,  strides[0],         strides[1],
                          dilations[0], dilations[1], self->is_pointwise, self->parts};
  o3_op_attr_set(o3_value_def(y), "o3.sparse", o3_attr_ints(lw->context, 8, form));
  return y;
}

static bool is_pointwise(const o3_lw_window_t *window, const o3_shape_t *x, const o3_shape_t *y) {
  for (int i = 0; i < 2; ++i) {
    bool padded = window->lows[i] || window->highs[i] || window->strides[i] != 1;
    if (padded || !o3_expr_equal(x->dims[2 + i], y->dims[2 + i])) return false;
  }
  return true;
}

static void same_body(const o3_body_args_t *in) { in->results[0] = in->args[0]; }

/* A plain image at every step, which is all that a window of one reads. */
static MlirValue take_steps(o3_lw_t *lw, MlirOperation op, MlirValue x, const o3_shape_t *y,
                            const o3_lw_window_t *window) {
  MlirAffineExpr exprs[4];
  o3_shape_t shape;
  o3_lw_operand_shape(lw, op, 0, &shape);
  if (window->strides[0] * window->strides[1] == 1) return x;
  for (int i = 0; i < 4; ++i) exprs[i] = mlirAffineDimExprGet(lw->context, i);
  for (int i = 0; i < 2; ++i) {
    MlirAffineExpr step = o3_expr_const(lw->context, window->strides[i]);
    exprs[2 + i] = mlirAffineMulExprGet(exprs[2 + i], step);
    shape.dims[2 + i] = y->dims[2 + i];
  }
  o3_generic_t generic = {.op = op,
                          .iterators = "pppp",
                          .num_inputs = 1,
                          .inputs = {x},
                          .num_outputs = 1,
                          .outputs = {o3_lw_empty(lw, &shape, o3_lw_new_element(op, 0))},
                          .maps = {mlirAffineMapGet(lw->context, 4, 0, 4, exprs), o3_lw_identity(lw, 4)},
                          .body = same_body};
  o3_lw_generic(lw, &generic, &x);
  return x;
}

o3_status_t o3_lower_conv_sparse(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                 MlirValue *results) {
  o3_lw_window_t window;
  o3_shape_t x_shape, y_shape;
  o3_lw_window_read(op, &window);
  o3_lw_operand_shape(lw, op, 0, &x_shape);
  o3_lw_result_shape(lw, op, 0, &y_shape);
  sparse_t self = {.rank = y_shape.rank, .window = &window};
  read_entries(&self, operands);
  self.x = o3_lw_blocked_border(lw, operands[0], &x_shape, &window);
  if (y_shape.rank == 4 && window.strides[0] * window.strides[1] > 1) {
    self.x = take_steps(lw, op, self.x, &y_shape, &window);
    x_shape = y_shape;
    window = (o3_lw_window_t){.strides = {1, 1}, .dilations = {1, 1}};
  }
  self.is_pointwise = is_pointwise(&window, &x_shape, &y_shape);
  MlirValue bias = mlirOperationGetNumOperands(op) > 4 ? operands[4] : (MlirValue){0};
  results[0] = build(lw, op, &self, o3_lw_blocked_start(lw, op, &y_shape, bias));
  return NULL;
}

o3_status_t o3_lower_matmul_sparse(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                   MlirValue *results) {
  o3_shape_t shape;
  o3_lw_result_shape(lw, op, 0, &shape);
  sparse_t self = {.x = operands[0], .rank = shape.rank};
  read_entries(&self, operands);
  if (self.lanes * self.depth == 1) self.panel = o3_type_dim(mlirValueGetType(operands[0]), 2);
  MlirValue zero = o3_lw_scalar(&lw->builder, o3_lw_new_element(op, 0), 0);
  results[0] = build(lw, op, &self, o3_lw_fill(lw, &shape, zero));
  return NULL;
}
