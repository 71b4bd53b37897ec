/* Reductions, positions of extrema, and running sums. Loops run in order, so results do not depend on
 * anything but the model. Half-precision elements are accumulated in f32, means of integers in i64. */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "target/ref/lowering.h"
#include "target/ref/scalar.h"

/* The scalar op of each kind for floats, signed and unsigned integers. */
typedef struct kind {
  const char *name, *scalar[3];
} kind_t;

static const kind_t KINDS[] = {
    {"sum", {"arith.addf", "arith.addi", "arith.addi"}},
    {"mean", {"arith.addf", "arith.addi", "arith.addi"}},
    {"sum_square", {"arith.addf", "arith.addi", "arith.addi"}},
    {"prod", {"arith.mulf", "arith.muli", "arith.muli"}},
    {"max", {"arith.maximumf", "arith.maxsi", "arith.maxui"}},
    {"min", {"arith.minimumf", "arith.minsi", "arith.minui"}},
    {"and", {NULL, "arith.andi", "arith.andi"}},
    {"or", {NULL, "arith.ori", "arith.ori"}},
};

/* What a reduction's bodies need. */
typedef struct reduction {
  const kind_t *kind;
  MlirType old;    /* element type of x */
  MlirType acc;    /* accumulator's type, as old types are */
  MlirValue count; /* mean: how many elements, in the accumulator's type */
} reduction_t;

static bool is_kind(const reduction_t *it, const char *name) { return strcmp(it->kind->name, name) == 0; }

static o3_status_t find_kind(o3_lw_t *lw, MlirOperation op, reduction_t *out) {
  MlirStringRef name = o3_op_string(op, "kind");
  *out = (reduction_t){.old = o3_lw_old_element(op, 0)};
  for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); ++i) {
    if (o3_str_equal(name, KINDS[i].name)) out->kind = &KINDS[i];
  }
  if (!out->kind || !out->kind->scalar[o3_number_kind(out->old)])
    return o3_status_create(O3_STATUS_UNSUPPORTED, "%s: reduction '%.*s' is not defined for its element type",
                            o3_lw_who(lw, op), O3_STR_ARGS(name));
  bool wide_mean = is_kind(out, "mean") && !o3_type_is_float(out->old);
  out->acc = wide_mean ? mlirIntegerTypeGet(lw->context, 64) : o3_scalar_wide_type(out->old);
  return NULL;
}

/* The smallest or largest number of a type. */
static MlirValue extreme(o3_builder_t *b, MlirType old, bool largest) {
  MlirType type = o3_lw_type(old);
  if (o3_type_is_float(type)) return o3_build_float(b, type, largest ? (double)INFINITY : -(double)INFINITY);
  unsigned width = mlirIntegerTypeGetWidth(type);
  bool is_signed = o3_number_kind(old) == O3_NUMBER_SIGNED;
  uint64_t high = is_signed ? (UINT64_C(1) << (width - 1)) - 1 : UINT64_MAX;
  uint64_t low = is_signed ? ~high : 0;
  return o3_build_int(b, type, (int64_t)(largest ? high : low));
}

static MlirValue identity(o3_builder_t *b, const reduction_t *it) {
  MlirType type = o3_lw_type(it->acc);
  if (is_kind(it, "max") || is_kind(it, "min")) return extreme(b, it->acc, is_kind(it, "min"));
  if (is_kind(it, "and")) return extreme(b, it->acc, true);
  return o3_build_number(b, type, is_kind(it, "prod") ? 1 : 0);
}

static MlirValue combine(o3_builder_t *b, const reduction_t *it, MlirValue acc, MlirValue x) {
  x = o3_lw_convert(b, x, it->old, it->acc);
  bool is_float = o3_type_is_float(it->acc);
  if (is_kind(it, "sum_square")) x = o3_build2(b, is_float ? "arith.mulf" : "arith.muli", x, x);
  return o3_build2(b, it->kind->scalar[o3_number_kind(it->acc)], acc, x);
}

static void reduce_body(const o3_body_args_t *in) {
  in->results[0] = combine(in->builder, in->context, in->args[1], in->args[0]);
}

static void finish_body(const o3_body_args_t *in) {
  const reduction_t *it = in->context;
  MlirValue x = in->args[0];
  if (is_kind(it, "mean"))
    x = o3_build2(in->builder, o3_type_is_float(it->acc) ? "arith.divf" : "arith.divsi", x, it->count);
  in->results[0] = o3_lw_convert(in->builder, x, it->acc, it->old);
}

/* ---- o3.reduce ---- */

typedef struct axes {
  int rank, num_kept;
  char iterators[O3_IR_MAX_RANK + 1];
  int64_t kept[O3_IR_MAX_RANK];
  o3_shape_t shape, kept_shape, reduced_shape;
} axes_t;

static void split_axes(const o3_shape_t *shape, int count, const int64_t *axes, axes_t *out) {
  *out = (axes_t){.rank = shape->rank, .shape = *shape};
  memset(out->iterators, 'p', (size_t)shape->rank);
  for (int i = 0; i < count; ++i) out->iterators[axes[i]] = 'r';
  for (int i = 0; i < shape->rank; ++i) {
    if (out->iterators[i] == 'r') {
      out->reduced_shape.dims[out->reduced_shape.rank++] = shape->dims[i];
    } else {
      out->kept_shape.dims[out->kept_shape.rank++] = shape->dims[i];
      out->kept[out->num_kept++] = i;
    }
  }
}

/* At least 1 for integers, whose division by zero would trap; an empty mean of floats is NaN. */
static MlirValue count_elements(o3_lw_t *lw, const axes_t *axes, MlirType acc) {
  o3_builder_t *b = &lw->builder;
  MlirType i64 = mlirIntegerTypeGet(lw->context, 64);
  MlirValue size =
      o3_lw_size(lw, o3_shape_product(lw->context, &axes->reduced_shape, 0, axes->reduced_shape.rank));
  MlirValue count = o3_build1(b, "arith.index_cast", i64, O3_VALUES(size));
  if (o3_type_is_float(acc)) return o3_build1(b, "arith.sitofp", acc, O3_VALUES(count));
  return o3_build2(b, "arith.maxsi", count, o3_build_int(b, i64, 1));
}

static MlirValue finish(o3_lw_t *lw, MlirValue value, const o3_shape_t *shape, reduction_t *it) {
  if (mlirTypeEqual(it->acc, it->old) && !is_kind(it, "mean")) return value;
  return o3_lw_map_shaped(lw, shape, o3_lw_type(it->old), 1, &value, shape, finish_body, it);
}

o3_status_t o3_lower_reduce(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  int64_t list[O3_IR_MAX_RANK];
  int count = o3_op_ints(op, "axes", list, O3_IR_MAX_RANK);
  o3_shape_t shape, result;
  axes_t axes;
  reduction_t it;
  O3_TRY(find_kind(lw, op, &it));
  o3_lw_operand_shape(lw, op, 0, &shape);
  o3_lw_result_shape(lw, op, 0, &result);
  split_axes(&shape, count, list, &axes);
  o3_generic_t generic = {
      .op = op,
      .iterators = axes.iterators,
      .num_inputs = 1,
      .inputs = {operands[0]},
      .num_outputs = 1,
      .outputs = {o3_lw_fill(lw, &axes.kept_shape, identity(&lw->builder, &it))},
      .maps = {o3_lw_identity(lw, axes.rank), o3_lw_projection(lw, axes.rank, axes.num_kept, axes.kept)},
      .body = reduce_body,
      .context = &it};
  o3_lw_generic(lw, &generic, results);
  if (is_kind(&it, "mean")) it.count = count_elements(lw, &axes, it.acc);
  results[0] = finish(lw, results[0], &axes.kept_shape, &it);
  results[0] = o3_lw_reshape(lw, results[0], &axes.kept_shape, &result);
  return NULL;
}

/* ---- o3.dynamic_reduce: axes that only the run knows ---- */

typedef struct window {
  reduction_t *reduction;
  MlirValue x, count;
  int rank, depth;
  MlirValue lower[O3_IR_MAX_RANK], upper[O3_IR_MAX_RANK], position[O3_IR_MAX_RANK], one;
} window_t;

/* The loop over dimension |depth| of the elements that meet in one result, around those of the next. */
static o3_status_t window_step(o3_builder_t *b, void *context, MlirValue index, const MlirValue *carried,
                               MlirValue *next) {
  window_t it = *(const window_t *)context;
  it.position[it.depth++] = index;
  if (it.depth == it.rank) {
    next[0] = combine(b, it.reduction, carried[0], o3_lw_extract(b, it.x, it.rank, it.position));
    return NULL;
  }
  o3_for_t loop = {.lower = it.lower[it.depth],
                   .upper = it.upper[it.depth],
                   .step = it.one,
                   .num_carried = 1,
                   .inits = carried,
                   .body = window_step,
                   .context = &it};
  return o3_build_for(b, &loop, next);
}

/* Along a reduced dimension all of x, else the result's own position. */
static void window_body(const o3_body_args_t *in) {
  window_t it = *(const window_t *)in->context;
  o3_builder_t *b = in->builder;
  MlirValue zero = o3_build_index(b, 0), acc = identity(b, it.reduction);
  it.one = o3_build_index(b, 1);
  for (int i = 0; i < it.rank; ++i) {
    MlirValue reduced = it.position[i], own = o3_lw_index(b, i);
    it.lower[i] = o3_build_select(b, reduced, zero, own);
    it.upper[i] = o3_build_select(b, reduced, it.upper[i], o3_build2(b, "arith.addi", own, it.one));
  }
  o3_for_t loop = {.lower = it.lower[0],
                   .upper = it.upper[0],
                   .step = it.one,
                   .num_carried = 1,
                   .inits = &acc,
                   .body = window_step,
                   .context = &it};
  o3_status_t status = o3_build_for(b, &loop, in->results);
  O3_ASSERT(!status, "window_step never fails");
}

static void count_windows(o3_lw_t *lw, window_t *it) {
  o3_builder_t *b = &lw->builder;
  MlirType i64 = mlirIntegerTypeGet(lw->context, 64), acc = it->reduction->acc;
  MlirValue one = o3_build_index(b, 1), count = one;
  for (int i = 0; i < it->rank; ++i)
    count = o3_build2(b, "arith.muli", count, o3_build_select(b, it->position[i], it->upper[i], one));
  count = o3_build1(b, "arith.index_cast", i64, O3_VALUES(count));
  it->reduction->count = o3_type_is_float(acc) ? o3_build1(b, "arith.sitofp", acc, O3_VALUES(count))
                                               : o3_build2(b, "arith.maxsi", count, o3_build_int(b, i64, 1));
}

o3_status_t o3_lower_dynamic_reduce(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                    MlirValue *results) {
  o3_builder_t *b = &lw->builder;
  o3_shape_t shape, result;
  reduction_t reduction;
  O3_TRY(find_kind(lw, op, &reduction));
  o3_lw_operand_shape(lw, op, 0, &shape);
  o3_lw_result_shape(lw, op, 0, &result);
  window_t it = {.reduction = &reduction, .x = operands[0], .rank = shape.rank};
  for (int i = 0; i < shape.rank; ++i) {
    MlirValue at = o3_build_index(b, i), flag = o3_lw_extract(b, operands[1], 1, &at);
    it.position[i] = o3_build_cmpi(b, O3_CMPI_NE, flag, o3_build_int(b, mlirValueGetType(flag), 0));
    it.upper[i] = o3_lw_size(lw, shape.dims[i]);
  }
  count_windows(lw, &it);
  MlirValue y = o3_lw_generate(lw, &result, o3_lw_type(reduction.acc), window_body, &it);
  results[0] = finish(lw, y, &result, &reduction);
  return NULL;
}

/* ---- o3.arg_reduce ---- */

typedef struct arg {
  bool largest, last;
  int axis;
  MlirType old;
} arg_t;

/* Whether x beats the best one so far; a NaN beats all numbers, and the first NaN all others. */
static MlirValue beats(o3_builder_t *b, const arg_t *it, MlirValue x, MlirValue best) {
  MlirValue a = it->largest ? best : x, c = it->largest ? x : best;
  o3_number_kind_t kind = o3_number_kind(it->old);
  if (kind == O3_NUMBER_SIGNED) return o3_build_cmpi(b, it->last ? O3_CMPI_SLE : O3_CMPI_SLT, a, c);
  if (kind == O3_NUMBER_UNSIGNED) return o3_build_cmpi(b, it->last ? O3_CMPI_ULE : O3_CMPI_ULT, a, c);
  MlirValue better = o3_build_cmpf(b, it->last ? O3_CMPF_OLE : O3_CMPF_OLT, a, c);
  MlirValue best_is_number = o3_build_cmpf(b, O3_CMPF_ORD, best, best);
  MlirValue x_is_nan = o3_build_cmpf(b, O3_CMPF_UNO, x, x);
  return o3_build2(b, "arith.ori", better, o3_build2(b, "arith.andi", x_is_nan, best_is_number));
}

static void arg_body(const o3_body_args_t *in) {
  const arg_t *it = in->context;
  o3_builder_t *b = in->builder;
  MlirValue x = o3_scalar_widen(b, in->args[0]);
  MlirValue wins = beats(b, it, x, in->args[1]);
  MlirValue position = o3_lw_index(b, it->axis);
  MlirValue index = o3_build1(b, "arith.index_cast", mlirIntegerTypeGet(b->context, 64), O3_VALUES(position));
  in->results[0] = o3_build_select(b, wins, x, in->args[1]);
  in->results[1] = o3_build_select(b, wins, index, in->args[2]);
}

o3_status_t o3_lower_arg_reduce(o3_lw_t *lw, MlirOperation op, const MlirValue *operands,
                                MlirValue *results) {
  o3_builder_t *b = &lw->builder;
  int64_t axis = o3_op_int(op, "axis", 0);
  o3_shape_t shape, result;
  axes_t axes;
  MlirValue both[2];
  arg_t it = {.largest = o3_str_equal(o3_op_string(op, "kind"), "max"),
              .last = o3_op_bool(op, "select_last", false),
              .axis = (int)axis,
              .old = o3_lw_old_element(op, 0)};
  o3_lw_operand_shape(lw, op, 0, &shape);
  o3_lw_result_shape(lw, op, 0, &result);
  split_axes(&shape, 1, &axis, &axes);
  MlirValue worst = extreme(b, o3_scalar_wide_type(it.old), !it.largest);
  MlirAffineMap kept = o3_lw_projection(lw, axes.rank, axes.num_kept, axes.kept);
  o3_generic_t generic = {
      .op = op,
      .iterators = axes.iterators,
      .num_inputs = 1,
      .inputs = {operands[0]},
      .num_outputs = 2,
      .outputs = {o3_lw_fill(lw, &axes.kept_shape, worst),
                  o3_lw_fill(lw, &axes.kept_shape, o3_build_int(b, mlirIntegerTypeGet(lw->context, 64), 0))},
      .maps = {o3_lw_identity(lw, axes.rank), kept, kept},
      .body = arg_body,
      .context = &it};
  o3_lw_generic(lw, &generic, both);
  results[0] = o3_lw_reshape(lw, both[1], &axes.kept_shape, &result);
  return NULL;
}

/* ---- o3.cumulate ---- */

typedef struct scan {
  reduction_t reduction;
  bool exclusive;
  int axis, rank;
  MlirValue tensor, last; /* of reversals */
} scan_t;

/* Outputs: the running values, and the accumulator of each line, which the loop along the axis carries. */
static void scan_body(const o3_body_args_t *in) {
  const scan_t *it = in->context;
  MlirValue acc = combine(in->builder, &it->reduction, in->args[2], in->args[0]);
  MlirValue shown = it->exclusive ? in->args[2] : acc;
  in->results[0] = o3_lw_convert(in->builder, shown, it->reduction.acc, it->reduction.old);
  in->results[1] = acc;
}

static void reverse_body(const o3_body_args_t *in) {
  const scan_t *it = in->context;
  MlirValue position[O3_IR_MAX_RANK];
  for (int i = 0; i < it->rank; ++i) position[i] = o3_lw_index(in->builder, i);
  position[it->axis] = o3_build2(in->builder, "arith.subi", it->last, position[it->axis]);
  in->results[0] = o3_lw_extract(in->builder, it->tensor, it->rank, position);
}

static MlirValue reverse(o3_lw_t *lw, MlirValue value, const o3_shape_t *shape, scan_t *it) {
  MlirValue size = o3_lw_size(lw, shape->dims[it->axis]);
  it->tensor = value;
  it->last = o3_build2(&lw->builder, "arith.subi", size, o3_build_index(&lw->builder, 1));
  return o3_lw_generate(lw, shape, o3_type_element(mlirValueGetType(value)), reverse_body, it);
}

/* Any order of the loops will do as long as each line is walked upwards: the axis is a reduction. */
o3_status_t o3_lower_cumulate(o3_lw_t *lw, MlirOperation op, const MlirValue *operands, MlirValue *results) {
  int64_t axis = o3_op_int(op, "axis", 0);
  bool backwards = o3_op_bool(op, "reverse", false);
  scan_t it = {.exclusive = o3_op_bool(op, "exclusive", false), .axis = (int)axis};
  o3_shape_t shape;
  axes_t axes;
  MlirValue both[2];
  O3_TRY(find_kind(lw, op, &it.reduction));
  o3_lw_operand_shape(lw, op, 0, &shape);
  it.rank = shape.rank;
  split_axes(&shape, 1, &axis, &axes);
  MlirAffineMap all = o3_lw_identity(lw, axes.rank);
  o3_generic_t generic = {
      .op = op,
      .iterators = axes.iterators,
      .num_inputs = 1,
      .inputs = {backwards ? reverse(lw, operands[0], &shape, &it) : operands[0]},
      .num_outputs = 2,
      .outputs = {o3_lw_empty(lw, &shape, o3_lw_new_element(op, 0)),
                  o3_lw_fill(lw, &axes.kept_shape, identity(&lw->builder, &it.reduction))},
      .maps = {all, all, o3_lw_projection(lw, axes.rank, axes.num_kept, axes.kept)},
      .body = scan_body,
      .context = &it,
      .kernel = "scan"};
  o3_lw_generic(lw, &generic, both);
  results[0] = backwards ? reverse(lw, both[0], &shape, &it) : both[0];
  return NULL;
}
