/* Sorting: positions 0..n-1 of a row are merged bottom-up in a table of two rows, of which each pass reads
 * one and writes the other. The merge is stable, so that ties keep the order of their positions. */
#include "target/ref/lower_nest.h"

/* ---- Merge sort of positions ---- */

/* Whether what stands at position |b| goes before what stands at |a|, for certain: i1. */
typedef o3_status_t (*goes_before_fn_t)(o3_builder_t *builder, void *context, MlirValue b, MlirValue a,
                                        MlirValue *result);

typedef struct sort {
  MlirValue count; /* index */
  goes_before_fn_t goes_before;
  void *context;
  MlirValue width, source, target; /* of the pass: length of sorted runs; rows of the table */
} sort_t;

static MlirValue add(o3_builder_t *b, MlirValue x, MlirValue y) { return o3_build2(b, "arith.addi", x, y); }
static MlirValue at_most(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build2(b, "arith.minsi", x, y);
}
static MlirValue less(o3_builder_t *b, MlirValue x, MlirValue y) {
  return o3_build_cmpi(b, O3_CMPI_SLT, x, y);
}

static MlirValue read_row(o3_builder_t *b, MlirValue table, MlirValue row, MlirValue column) {
  MlirValue place[2] = {row, column};
  return o3_lw_extract(b, table, 2, place);
}

/* One output position: state is the table and the next positions in the left and the right run. A run that is
 * used up is read at a clamped position, and the answer not used. */
static o3_status_t merge_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  const sort_t *sort = context;
  MlirValue at = position[0], one = o3_build_index(b, 1);
  MlirValue pair = add(b, sort->width, sort->width);
  MlirValue inside = o3_build2(b, "arith.remui", at, pair), start = o3_build2(b, "arith.subi", at, inside);
  MlirValue middle = at_most(b, add(b, start, sort->width), sort->count);
  MlirValue end = at_most(b, add(b, start, pair), sort->count);
  MlirValue fresh = o3_build_cmpi(b, O3_CMPI_EQ, inside, o3_build_index(b, 0));
  MlirValue left = o3_build_select(b, fresh, start, state[1]),
            right = o3_build_select(b, fresh, middle, state[2]);
  MlirValue last = o3_build2(b, "arith.subi", sort->count, one);
  MlirValue from_left = read_row(b, state[0], sort->source, at_most(b, left, last));
  MlirValue from_right = read_row(b, state[0], sort->source, at_most(b, right, last));
  MlirValue better;
  O3_TRY(sort->goes_before(b, sort->context, from_right, from_left, &better));
  MlirValue left_done = o3_build_cmpi(b, O3_CMPI_SGE, left, middle);
  MlirValue take_right =
      o3_build2(b, "arith.andi", less(b, right, end), o3_build2(b, "arith.ori", left_done, better));
  MlirValue place[2] = {sort->target, at};
  state[0] = o3_lw_insert(b, o3_build_select(b, take_right, from_right, from_left), state[0], 2, place);
  state[1] = o3_build_select(b, take_right, left, add(b, left, one));
  state[2] = o3_build_select(b, take_right, add(b, right, one), right);
  return NULL;
}

/* State: the table, the width, the row that holds the result so far. */
static o3_status_t pass_body(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                             MlirValue *next) {
  (void)index;
  sort_t pass = *(const sort_t *)context;
  MlirValue zero = o3_build_index(b, 0), state[3] = {carried[0], zero, zero};
  pass.width = carried[1];
  pass.source = carried[2];
  pass.target = o3_build2(b, "arith.subi", o3_build_index(b, 1), carried[2]);
  o3_nest_t nest = {.rank = 1, .sizes = &pass.count, .num_state = 3, .body = merge_body, .context = &pass};
  O3_TRY(o3_lw_nest(b, &nest, state));
  next[0] = state[0];
  next[1] = add(b, carried[1], carried[1]);
  next[2] = pass.target;
  return NULL;
}

static o3_status_t fill_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  (void)context;
  MlirValue place[2] = {o3_build_index(b, 0), position[0]};
  state[0] = o3_lw_insert(b, position[0], state[0], 2, place);
  return NULL;
}

/* Passes until runs are as long as the row: the bits of count - 1. For an empty row none are needed. */
static MlirValue num_passes(o3_builder_t *b, MlirValue count) {
  MlirType i64 = mlirIntegerTypeGet(b->context, 64);
  MlirValue most = o3_build2(b, "arith.maxsi", count, o3_build_index(b, 1));
  MlirValue last = o3_build2(b, "arith.subi", most, o3_build_index(b, 1));
  MlirValue zeros =
      o3_build1(b, "math.ctlz", i64, O3_VALUES(o3_build1(b, "arith.index_cast", i64, O3_VALUES(last))));
  MlirValue bits = o3_build2(b, "arith.subi", o3_build_int(b, i64, 64), zeros);
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(bits));
}

/* Sorts in |table| (2 x count of index); |row| gets the row that holds the sorted positions. */
static o3_status_t build_sort(o3_builder_t *b, sort_t *sort, MlirValue *table, MlirValue *row) {
  MlirValue zero = o3_build_index(b, 0), one = o3_build_index(b, 1), results[3];
  o3_nest_t fill = {.rank = 1, .sizes = &sort->count, .num_state = 1, .body = fill_body};
  O3_TRY(o3_lw_nest(b, &fill, table));
  MlirValue inits[3] = {*table, one, zero};
  o3_for_t passes = {.lower = zero,
                     .upper = num_passes(b, sort->count),
                     .step = one,
                     .num_carried = 3,
                     .inits = inits,
                     .body = pass_body,
                     .context = sort};
  O3_TRY(o3_build_for(b, &passes, results));
  *table = results[0];
  *row = results[2];
  return NULL;
}

static MlirValue new_table(o3_lw_t *lw, MlirAffineExpr count) {
  o3_shape_t shape = {.rank = 2, .dims = {o3_expr_const(lw->context, 2), count}};
  return o3_lw_empty(lw, &shape, mlirIndexTypeGet(lw->context));
}

/* ---- Numbers in order ---- */

/* NaN is larger than all other numbers, so that there is an order at all. */
static MlirValue number_less(o3_builder_t *b, o3_number_kind_t kind, MlirValue x, MlirValue y) {
  if (kind == O3_NUMBER_SIGNED) return o3_build_cmpi(b, O3_CMPI_SLT, x, y);
  if (kind == O3_NUMBER_UNSIGNED) return o3_build_cmpi(b, O3_CMPI_ULT, x, y);
  MlirValue smaller = o3_build_cmpf(b, O3_CMPF_OLT, x, y);
  MlirValue x_number = o3_build_cmpf(b, O3_CMPF_ORD, x, x), y_nan = o3_build_cmpf(b, O3_CMPF_UNO, y, y);
  return o3_build2(b, "arith.ori", smaller, o3_build2(b, "arith.andi", x_number, y_nan));
}

static MlirValue as_i64(o3_builder_t *b, MlirValue index) {
  return o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 64), O3_VALUES(index));
}

/* ---- top_k ---- */

typedef struct top_k {
  MlirValue x, count, k;
  int rank, axis;
  bool largest;
  o3_number_kind_t kind;
  MlirValue at[O3_IR_MAX_RANK]; /* of the row; the axis is put in */
  MlirValue table, row;
} top_k_t;

static MlirValue row_element(o3_builder_t *b, const top_k_t *self, MlirValue position) {
  MlirValue at[O3_IR_MAX_RANK];
  for (int i = 0; i < self->rank; ++i) at[i] = i == self->axis ? position : self->at[i];
  return o3_lw_extract(b, self->x, self->rank, at);
}

static o3_status_t ranks_before(o3_builder_t *builder, void *context, MlirValue b, MlirValue a,
                                MlirValue *result) {
  const top_k_t *self = context;
  MlirValue x = row_element(builder, self, b), y = row_element(builder, self, a);
  *result = self->largest ? number_less(builder, self->kind, y, x) : number_less(builder, self->kind, x, y);
  return NULL;
}

static o3_status_t take_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  const top_k_t *self = context;
  MlirValue at[O3_IR_MAX_RANK], source = read_row(b, self->table, self->row, position[0]);
  for (int i = 0; i < self->rank; ++i) at[i] = i == self->axis ? position[0] : self->at[i];
  state[0] = o3_lw_insert(b, row_element(b, self, source), state[0], self->rank, at);
  state[1] = o3_lw_insert(b, as_i64(b, source), state[1], self->rank, at);
  return NULL;
}

/* One row of x: state is the values, the indices and the table. */
static o3_status_t row_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  top_k_t self = *(const top_k_t *)context;
  for (int i = 0, next = 0; i < self.rank; ++i) {
    if (i != self.axis) self.at[i] = position[next++];
  }
  sort_t sort = {.count = self.count, .goes_before = ranks_before, .context = &self};
  O3_TRY(build_sort(b, &sort, &state[2], &self.row));
  self.table = state[2];
  o3_nest_t take = {.rank = 1, .sizes = &self.k, .num_state = 2, .body = take_body, .context = &self};
  return o3_lw_nest(b, &take, state);
}

o3_status_t o3_lower_top_k(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t x, y;
  MlirValue outer[O3_IR_MAX_RANK];
  int num_outer = 0;
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_result_shape(lw, op, 0, &y);
  top_k_t self = {.x = operands[0],
                  .rank = x.rank,
                  .axis = (int)o3_op_int(op, "axis", 0),
                  .largest = o3_op_bool(op, "largest", true),
                  .kind = o3_number_kind(o3_lw_old_element(op, 0))};
  self.count = o3_lw_size(lw, x.dims[self.axis]);
  self.k = o3_lw_size(lw, y.dims[self.axis]);
  for (int i = 0; i < x.rank; ++i) {
    if (i != self.axis) outer[num_outer++] = o3_lw_size(lw, x.dims[i]);
  }
  MlirValue state[3] = {o3_lw_empty(lw, &y, o3_lw_new_element(op, 0)),
                        o3_lw_empty(lw, &y, o3_lw_new_element(op, 1)), new_table(lw, x.dims[self.axis])};
  o3_nest_t rows = {.rank = num_outer, .sizes = outer, .num_state = 3, .body = row_body, .context = &self};
  O3_TRY(o3_lw_nest(&lw->builder, &rows, state));
  results[0] = state[0];
  results[1] = state[1];
  return NULL;
}

/* ---- unique ---- */

typedef struct unique {
  MlirValue x, rows, columns;
  o3_number_kind_t kind;
  MlirValue a, b;       /* rows under comparison */
  MlirValue table, row; /* sorted */
} unique_t;

static MlirValue cell(o3_builder_t *b, const unique_t *self, MlirValue row, MlirValue column) {
  return read_row(b, self->x, row, column);
}

/* State: -1, 0 or 1 as row b is before, equal to or behind row a; the first column that differs decides. */
static o3_status_t compare_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  const unique_t *self = context;
  MlirValue x = cell(b, self, self->b, position[0]), y = cell(b, self, self->a, position[0]);
  MlirValue zero = o3_build_index(b, 0);
  MlirValue after = o3_build_select(b, number_less(b, self->kind, y, x), o3_build_index(b, 1), zero);
  MlirValue here = o3_build_select(b, number_less(b, self->kind, x, y), o3_build_index(b, -1), after);
  MlirValue open = o3_build_cmpi(b, O3_CMPI_EQ, state[0], zero);
  state[0] = o3_build_select(b, open, here, state[0]);
  return NULL;
}

static o3_status_t compare_rows(o3_builder_t *builder, const unique_t *base, MlirValue b, MlirValue a,
                                MlirValue *order) {
  unique_t self = *base;
  self.a = a;
  self.b = b;
  o3_nest_t nest = {
      .rank = 1, .sizes = &self.columns, .num_state = 1, .body = compare_body, .context = &self};
  *order = o3_build_index(builder, 0);
  return o3_lw_nest(builder, &nest, order);
}

static o3_status_t row_before(o3_builder_t *builder, void *context, MlirValue b, MlirValue a,
                              MlirValue *result) {
  MlirValue order;
  O3_TRY(compare_rows(builder, context, b, a, &order));
  *result = o3_build_cmpi(builder, O3_CMPI_SLT, order, o3_build_index(builder, 0));
  return NULL;
}

static MlirValue vector_at(o3_builder_t *b, MlirValue vector, MlirValue i) {
  return o3_lw_extract(b, vector, 1, &i);
}
static MlirValue vector_put(o3_builder_t *b, MlirValue scalar, MlirValue vector, MlirValue i) {
  return o3_lw_insert(b, scalar, vector, 1, &i);
}
static MlirValue as_index(o3_builder_t *b, MlirValue i64) {
  return o3_build1(b, "arith.index_cast", o3_build_index_type(b), O3_VALUES(i64));
}

/* Along the sorted rows. State: first, inverse, counts, and the number of groups so far. */
static o3_status_t group_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  const unique_t *self = context;
  MlirValue zero = o3_build_index(b, 0), one = o3_build_index(b, 1), order;
  MlirType i64 = mlirIntegerTypeGet(b->context, 64);
  MlirValue before = o3_build2(b, "arith.maxsi", o3_build2(b, "arith.subi", position[0], one), zero);
  MlirValue row = read_row(b, self->table, self->row, position[0]);
  O3_TRY(compare_rows(b, self, row, read_row(b, self->table, self->row, before), &order));
  MlirValue start = o3_build_cmpi(b, O3_CMPI_EQ, position[0], zero);
  MlirValue fresh = o3_build2(b, "arith.ori", start, o3_build_cmpi(b, O3_CMPI_NE, order, zero));
  MlirValue groups = o3_build_select(b, fresh, add(b, state[3], one), state[3]);
  MlirValue group = o3_build2(b, "arith.subi", groups, one);
  MlirValue first = o3_build_select(b, fresh, as_i64(b, row), vector_at(b, state[0], group));
  MlirValue old = o3_build_select(b, fresh, o3_build_int(b, i64, 0), vector_at(b, state[2], group));
  state[0] = vector_put(b, first, state[0], group);
  state[1] = vector_put(b, as_i64(b, group), state[1], row);
  state[2] = vector_put(b, add(b, old, o3_build_int(b, i64, 1)), state[2], group);
  state[3] = groups;
  return NULL;
}

/* Order of first occurrence: along the rows as they came, a group gets the next place at its first row.
 * |context|: groups' first rows, sorted; each row's sorted group; counts. State: first, inverse, counts in
 * the new order, the place of each sorted group, the number of places given. */
static o3_status_t reorder_body(o3_builder_t *b, void *context, const MlirValue *position, MlirValue *state) {
  const MlirValue *sorted = context;
  MlirValue group = as_index(b, vector_at(b, sorted[1], position[0]));
  MlirValue row = as_i64(b, position[0]);
  MlirValue fresh = o3_build_cmpi(b, O3_CMPI_EQ, vector_at(b, sorted[0], group), row);
  MlirValue place = o3_build_select(b, fresh, as_i64(b, state[4]), vector_at(b, state[3], group));
  state[3] = vector_put(b, place, state[3], group);
  state[0] = vector_put(b, vector_at(b, sorted[0], group), state[0], as_index(b, place));
  state[1] = vector_put(b, place, state[1], position[0]);
  state[2] = vector_put(b, vector_at(b, sorted[2], group), state[2], as_index(b, place));
  state[4] = o3_build_select(b, fresh, add(b, state[4], o3_build_index(b, 1)), state[4]);
  return NULL;
}

static MlirValue new_vector(o3_lw_t *lw, MlirAffineExpr size) {
  o3_shape_t shape = {.rank = 1, .dims = {size}};
  return o3_lw_empty(lw, &shape, mlirIntegerTypeGet(lw->context, 64));
}

static o3_status_t reorder(o3_lw_t *lw, MlirAffineExpr size, const unique_t *self, MlirValue *vectors) {
  MlirValue sorted[3] = {vectors[0], vectors[1], vectors[2]}, state[5];
  for (int i = 0; i < 4; ++i) state[i] = new_vector(lw, size);
  state[4] = o3_build_index(&lw->builder, 0);
  o3_nest_t nest = {.rank = 1, .sizes = &self->rows, .num_state = 5, .body = reorder_body, .context = sorted};
  O3_TRY(o3_lw_nest(&lw->builder, &nest, state));
  for (int i = 0; i < 3; ++i) vectors[i] = state[i];
  return NULL;
}

o3_status_t o3_lower_unique(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  o3_shape_t x;
  o3_lw_operand_shape(lw, op, 0, &x);
  unique_t self = {.x = operands[0],
                   .rows = o3_lw_size(lw, x.dims[0]),
                   .columns = o3_lw_size(lw, x.dims[1]),
                   .kind = o3_number_kind(o3_lw_old_element(op, 0)),
                   .table = new_table(lw, x.dims[0])};
  sort_t sort = {.count = self.rows, .goes_before = row_before, .context = &self};
  O3_TRY(build_sort(&lw->builder, &sort, &self.table, &self.row));
  MlirValue state[4] = {new_vector(lw, x.dims[0]), new_vector(lw, x.dims[0]), new_vector(lw, x.dims[0]),
                        o3_build_index(&lw->builder, 0)};
  o3_nest_t groups = {.rank = 1, .sizes = &self.rows, .num_state = 4, .body = group_body, .context = &self};
  O3_TRY(o3_lw_nest(&lw->builder, &groups, state));
  if (!o3_op_bool(op, "sorted", true)) O3_TRY(reorder(lw, x.dims[0], &self, state));
  results[0] = o3_lw_first(&lw->builder, state[0], 0, state[3]);
  results[1] = state[1];
  results[2] = o3_lw_first(&lw->builder, state[2], 0, state[3]);
  return NULL;
}
