/* Sampling at positions that lie between elements: GridSample, and the columns of deformable convolutions. */
#include "base/check.h"
#include "target/ref/body_math.h"
#include "target/ref/window.h"

enum { MAX_TAPS = 4 };

typedef enum padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } padding_t;

/* An input N C spatial... that is sampled. */
typedef struct field {
  MlirValue x;
  int rank;                                                 /* spatial */
  MlirValue sizes[O3_IR_MAX_RANK], lengths[O3_IR_MAX_RANK]; /* spatial: index, and in |real| */
  MlirType element, real; /* old element type; type of positions and weights */
  padding_t padding;
  bool align_corners;
} field_t;

/* Along one dimension: where the taps are, how they weigh, and whether they are inside. */
typedef struct taps {
  int count;
  MlirValue index[MAX_TAPS], weight[MAX_TAPS], inside[MAX_TAPS];
} taps_t;

static void read_field(o3_lw_t *lw, MlirOperation op, MlirValue x, field_t *field) {
  o3_shape_t shape;
  o3_lw_operand_shape(lw, op, 0, &shape);
  field->x = x;
  field->rank = shape.rank - 2;
  field->element = o3_lw_old_element(op, 0);
  field->real = mlirTypeIsAF64(field->element) ? field->element : mlirF32TypeGet(lw->context);
  for (int i = 0; i < field->rank; ++i) {
    field->sizes[i] = o3_lw_size(lw, shape.dims[2 + i]);
    field->lengths[i] = o3_index_to_float(&lw->builder, field->sizes[i], field->real);
  }
}

/* ---- Positions beyond the border ---- */

/* Mirrored at the centers of the first and last element (align_corners), or at their outer edges. */
static MlirValue reflected(o3_builder_t *b, const field_t *field, int dim, MlirValue x) {
  double first = field->align_corners ? 0 : -0.5;
  MlirValue low = o3_number_like(b, x, first);
  MlirValue high = o3_addf_number(b, field->lengths[dim], field->align_corners ? -1 : -0.5);
  MlirValue range = o3_subf(b, high, low), zero = o3_number_like(b, x, 0), one = o3_number_like(b, x, 1);
  MlirValue flat = o3_build_cmpf(b, O3_CMPF_OLE, range, zero);
  MlirValue safe = o3_build_select(b, flat, one, range);
  MlirValue way = o3_build_unary(b, "math.absf", o3_subf(b, x, low));
  MlirValue turns = o3_floorf(b, o3_divf(b, way, safe));
  MlirValue rest = o3_subf(b, way, o3_mulf(b, turns, safe));
  MlirValue half = o3_mulf_number(b, turns, 0.5);
  MlirValue even = o3_build_cmpf(b, O3_CMPF_OEQ, half, o3_floorf(b, half));
  MlirValue y = o3_build_select(b, even, o3_addf(b, low, rest), o3_subf(b, high, rest));
  return o3_build_select(b, flat, low, y);
}

static MlirValue inside_border(o3_builder_t *b, const field_t *field, int dim, MlirValue x) {
  MlirValue last = o3_addf_number(b, field->lengths[dim], -1);
  return o3_minf(b, o3_maxf(b, x, o3_number_like(b, x, 0)), last);
}

static MlirValue settled(o3_builder_t *b, const field_t *field, int dim, MlirValue x) {
  if (field->padding == PAD_BORDER) return inside_border(b, field, dim, x);
  return field->padding == PAD_REFLECTION ? reflected(b, field, dim, x) : x;
}

/* ---- Taps ---- */

/* One tap at the whole position |at|. */
static void add_tap(o3_builder_t *b, const field_t *field, int dim, MlirValue at, MlirValue weight,
                    taps_t *taps) {
  int i = taps->count++;
  O3_ASSERT(i < MAX_TAPS, "interpolation has at most four taps a dimension");
  MlirValue last = o3_addf_number(b, field->lengths[dim], -1);
  taps->inside[i] = o3_both(b, o3_build_cmpf(b, O3_CMPF_OGE, at, o3_number_like(b, at, 0)),
                            o3_build_cmpf(b, O3_CMPF_OLE, at, last));
  MlirValue place = field->padding == PAD_REFLECTION ? reflected(b, field, dim, at) : at;
  taps->index[i] = o3_index_clamp(b, o3_float_to_index(b, place), field->sizes[dim]);
  taps->weight[i] = weight;
}

static void linear_taps(o3_builder_t *b, const field_t *field, int dim, MlirValue x, taps_t *taps) {
  MlirValue low = o3_floorf(b, x), part = o3_subf(b, x, low);
  add_tap(b, field, dim, low, o3_subf(b, o3_number_like(b, x, 1), part), taps);
  add_tap(b, field, dim, o3_addf_number(b, low, 1), part, taps);
}

/* Keys' kernel with a = -0.75 at distance |t|: `near` within 1, else for 1 to 2. */
static MlirValue cubic_weight(o3_builder_t *b, MlirValue t, bool near) {
  const double a = -0.75;
  if (near) {
    MlirValue inner = o3_addf_number(b, o3_mulf_number(b, t, a + 2), -(a + 3));
    return o3_addf_number(b, o3_mulf(b, o3_mulf(b, inner, t), t), 1);
  }
  MlirValue inner = o3_mulf(b, o3_addf_number(b, o3_mulf_number(b, t, a), -5 * a), t);
  return o3_addf_number(b, o3_mulf(b, o3_addf_number(b, inner, 8 * a), t), -4 * a);
}

static void cubic_taps(o3_builder_t *b, const field_t *field, int dim, MlirValue x, taps_t *taps) {
  MlirValue low = o3_floorf(b, x), part = o3_subf(b, x, low),
            rest = o3_subf(b, o3_number_like(b, x, 1), part);
  add_tap(b, field, dim, o3_addf_number(b, low, -1), cubic_weight(b, o3_addf_number(b, part, 1), false),
          taps);
  add_tap(b, field, dim, low, cubic_weight(b, part, true), taps);
  add_tap(b, field, dim, o3_addf_number(b, low, 1), cubic_weight(b, rest, true), taps);
  add_tap(b, field, dim, o3_addf_number(b, low, 2), cubic_weight(b, o3_addf_number(b, rest, 1), false), taps);
}

/* The element at one tap of each dimension, weighted. */
static MlirValue weighted(o3_builder_t *b, const field_t *field, const MlirValue *lead, const taps_t *taps,
                          const int *choice) {
  MlirValue positions[O3_IR_MAX_RANK] = {lead[0], lead[1]}, weight = {0}, inside = {0};
  for (int i = 0; i < field->rank; ++i) {
    MlirValue own = taps[i].weight[choice[i]], in = taps[i].inside[choice[i]];
    positions[2 + i] = taps[i].index[choice[i]];
    if (own.ptr) weight = weight.ptr ? o3_mulf(b, weight, own) : own;
    inside = inside.ptr ? o3_both(b, inside, in) : in;
  }
  MlirValue value = o3_lw_extract(b, field->x, field->rank + 2, positions);
  value = o3_lw_convert(b, value, field->element, field->real);
  if (field->padding == PAD_ZEROS) value = o3_build_select(b, inside, value, o3_number_like(b, value, 0));
  return weight.ptr ? o3_mulf(b, value, weight) : value;
}

/* The sum over all combinations of taps; |lead| are the positions in N and C. */
static MlirValue sum_of_taps(o3_builder_t *b, const field_t *field, const MlirValue *lead,
                             const taps_t *taps) {
  int choice[O3_IR_MAX_RANK] = {0}, dim = 0;
  MlirValue sum = {0};
  while (dim < field->rank) {
    MlirValue term = weighted(b, field, lead, taps, choice);
    sum = sum.ptr ? o3_addf(b, sum, term) : term;
    for (dim = 0; dim < field->rank && ++choice[dim] == taps[dim].count; ++dim) choice[dim] = 0;
  }
  return sum;
}

/* ---- GridSample ---- */

typedef struct grid {
  field_t field;
  MlirValue grid;
  MlirType grid_element;
  MlirStringRef mode;
} grid_t;

/* -1 .. 1 to 0 .. size - 1, or to the outer edges. */
static MlirValue denormalized(o3_builder_t *b, const field_t *field, int dim, MlirValue x) {
  MlirValue from_zero = o3_addf_number(b, x, 1), length = field->lengths[dim];
  if (field->align_corners)
    return o3_mulf(b, o3_mulf_number(b, from_zero, 0.5), o3_addf_number(b, length, -1));
  return o3_mulf_number(b, o3_addf_number(b, o3_mulf(b, from_zero, length), -1), 0.5);
}

/* The grid's last dimension names the last spatial dimension first. */
static MlirValue grid_position(o3_builder_t *b, const grid_t *grid, int dim) {
  MlirValue positions[O3_IR_MAX_RANK];
  int rank = grid->field.rank;
  positions[0] = o3_lw_index(b, 0);
  for (int i = 0; i < rank; ++i) positions[1 + i] = o3_lw_index(b, 2 + i);
  positions[1 + rank] = o3_build_index(b, rank - 1 - dim);
  MlirValue x = o3_lw_extract(b, grid->grid, rank + 2, positions);
  return denormalized(b, &grid->field, dim, o3_lw_convert(b, x, grid->grid_element, grid->field.real));
}

static void grid_body(const o3_body_args_t *in) {
  const grid_t *grid = in->context;
  const field_t *field = &grid->field;
  o3_builder_t *b = in->builder;
  taps_t taps[O3_IR_MAX_RANK] = {{0}};
  for (int i = 0; i < field->rank; ++i) {
    MlirValue x = grid_position(b, grid, i);
    if (o3_str_equal(grid->mode, "nearest")) {
      MlirValue near = settled(b, field, i, o3_build_unary(b, "math.roundeven", x));
      add_tap(b, field, i, near, (MlirValue){0}, &taps[i]);
    } else if (o3_str_equal(grid->mode, "linear")) {
      linear_taps(b, field, i, settled(b, field, i, x), &taps[i]);
    } else {
      cubic_taps(b, field, i, x, &taps[i]); /* taps are moved inside one by one, as PyTorch does */
    }
  }
  const MlirValue lead[2] = {o3_lw_index(b, 0), o3_lw_index(b, 1)};
  in->results[0] = o3_lw_convert(b, sum_of_taps(b, field, lead, taps), field->real, field->element);
}

o3_status_t o3_lower_grid_sample(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                 MlirValue *results) {
  o3_shape_t shape;
  grid_t grid = {
      .grid = operands[1], .grid_element = o3_lw_old_element(op, 1), .mode = o3_op_string(op, "mode")};
  MlirStringRef padding = o3_op_string(op, "padding");
  read_field(lw, op, operands[0], &grid.field);
  grid.field.align_corners = o3_op_bool(op, "align_corners", false);
  grid.field.padding = o3_str_equal(padding, "border")       ? PAD_BORDER
                       : o3_str_equal(padding, "reflection") ? PAD_REFLECTION
                                                             : PAD_ZEROS;
  o3_lw_result_shape(lw, op, 0, &shape);
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), grid_body, &grid);
  return NULL;
}

/* ---- Columns of deformable convolutions ---- */

typedef struct columns {
  field_t field;
  o3_lw_window_t window;
  MlirValue offset, mask; /* mask may be null */
  MlirType offset_element, mask_element;
  int64_t volume;      /* of the kernel */
  MlirValue per_group; /* channels that share offsets, an index */
} columns_t;

/* The element of |tensor| (N channels spatial...) in |channel| at this output position. */
static MlirValue at_output(o3_builder_t *b, const columns_t *columns, MlirValue tensor, MlirValue channel) {
  MlirValue positions[O3_IR_MAX_RANK] = {o3_lw_index(b, 0), channel};
  for (int i = 0; i < columns->field.rank; ++i) positions[2 + i] = o3_lw_index(b, 2 + i);
  return o3_lw_extract(b, tensor, columns->field.rank + 2, positions);
}

/* o * stride - pad + k * dilation, k being dimension |dim| of the flat kernel position |k|. */
static MlirValue undeformed(o3_builder_t *b, const columns_t *columns, int dim, MlirValue k) {
  const o3_lw_window_t *window = &columns->window;
  int64_t inner = 1;
  for (int i = dim + 1; i < window->rank; ++i) inner *= window->kernel[i];
  MlirValue outer = o3_build2(b, "arith.divui", k, o3_build_index(b, inner));
  MlirValue tap = o3_build2(b, "arith.remui", outer, o3_build_index(b, window->kernel[dim]));
  MlirValue reach = o3_build2(b, "arith.muli", tap, o3_build_index(b, window->dilations[dim]));
  MlirValue start =
      o3_build2(b, "arith.muli", o3_lw_index(b, 2 + dim), o3_build_index(b, window->strides[dim]));
  MlirValue moved = o3_build2(b, "arith.addi", start, o3_build_index(b, -window->lows[dim]));
  return o3_index_to_float(b, o3_build2(b, "arith.addi", moved, reach), columns->field.real);
}

/* Channels of the result: input channel, then kernel position; of the offsets: group, kernel position,
 * dimension. */
static void columns_body(const o3_body_args_t *in) {
  const columns_t *columns = in->context;
  const field_t *field = &columns->field;
  o3_builder_t *b = in->builder;
  taps_t taps[O3_IR_MAX_RANK] = {{0}};
  MlirValue volume = o3_build_index(b, columns->volume), flat = o3_lw_index(b, 1);
  MlirValue channel = o3_build2(b, "arith.divui", flat, volume),
            k = o3_build2(b, "arith.remui", flat, volume);
  MlirValue group = o3_build2(b, "arith.divui", channel, columns->per_group);
  MlirValue place = o3_build2(b, "arith.addi", o3_build2(b, "arith.muli", group, volume), k);
  MlirValue first = o3_build2(b, "arith.muli", place, o3_build_index(b, field->rank));
  for (int i = 0; i < field->rank; ++i) {
    MlirValue index = o3_build2(b, "arith.addi", first, o3_build_index(b, i));
    MlirValue offset = at_output(b, columns, columns->offset, index);
    offset = o3_lw_convert(b, offset, columns->offset_element, field->real);
    linear_taps(b, field, i, o3_addf(b, undeformed(b, columns, i, k), offset), &taps[i]);
  }
  const MlirValue lead[2] = {o3_lw_index(b, 0), channel};
  MlirValue y = sum_of_taps(b, field, lead, taps);
  if (columns->mask.ptr) {
    MlirValue mask = at_output(b, columns, columns->mask, place);
    y = o3_mulf(b, y, o3_lw_convert(b, mask, columns->mask_element, field->real));
  }
  in->results[0] = o3_lw_convert(b, y, field->real, field->element);
}

o3_status_t o3_lower_deform_columns(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                    MlirValue *results) {
  o3_shape_t x, shape;
  columns_t columns = {.offset = operands[1], .offset_element = o3_lw_old_element(op, 1), .volume = 1};
  if (mlirOperationGetNumOperands(op) > 2) {
    columns.mask = operands[2];
    columns.mask_element = o3_lw_old_element(op, 2);
  }
  o3_lw_operand_shape(lw, op, 0, &x);
  o3_lw_result_shape(lw, op, 0, &shape);
  o3_lw_window_read(op, &columns.window);
  read_field(lw, op, operands[0], &columns.field);
  for (int i = 0; i < columns.window.rank; ++i) columns.volume *= columns.window.kernel[i];
  MlirAffineExpr groups = o3_expr_const(lw->context, o3_op_int(op, "offset_group", 1));
  columns.per_group = o3_lw_size(lw, o3_expr_floor_div(x.dims[1], groups));
  results[0] = o3_lw_generate(lw, &shape, o3_lw_new_element(op, 0), columns_body, &columns);
  return NULL;
}
