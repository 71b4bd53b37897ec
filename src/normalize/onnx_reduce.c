/* Reductions, running sums, and softmax. */
#include <string.h>

#include "base/check.h"
#include "normalize/nz_math.h"

/* ---- Axes ---- */

/* The axes of a reduction. Known while compiling: |count| of them in |list|; else |flags| is an i64 vector
 * with an entry for each dimension, and |count| the number of axes. */
typedef struct axes {
  bool keep;
  int count;
  int64_t list[O3_IR_MAX_RANK];
  MlirValue flags;
} axes_t;

static void all_axes(axes_t *axes, int rank) {
  axes->count = rank;
  for (int i = 0; i < rank; ++i) axes->list[i] = i;
}

/* flags[d] = some axis is d or d - rank */
static MlirValue axis_flags(o3_nz_t *nz, MlirValue axes, int rank) {
  int64_t numbers[O3_IR_MAX_RANK];
  for (int i = 0; i < rank; ++i) numbers[i] = i;
  MlirValue dims = o3_nz_i64s(nz, rank, numbers);
  MlirValue wide = o3_nz_cast(nz, axes, o3_nz_i64(nz));
  MlirValue positive = o3_nz_mod_number(nz, wide, rank);
  MlirValue column = o3_nz_unsqueeze(nz, positive, 1, (int64_t[]){1});
  MlirValue hits = o3_nz_cast(nz, o3_nz_equal(nz, column, dims), o3_nz_i64(nz));
  return o3_nz_reduce(nz, hits, "max", 1, (int64_t[]){0}, false);
}

static void read_axes_input(o3_nz_t *nz, MlirValue input, int rank, axes_t *axes) {
  const o3_fact_t *fact = o3_nz_fact(nz, input);
  int64_t length = fact->shape.rank == 1 ? o3_nz_static_dim(nz, input, 0, "the number of axes") : 1;
  if (length == 0 || o3_nz_failed(nz)) return;
  if (o3_fact_is_const(fact)) {
    axes->count = o3_nz_const_ints(nz, input, "axes", axes->list, O3_IR_MAX_RANK);
  } else if (length > rank) {
    o3_nz_fail(nz, o3_nz_invalid(nz, "%lld axes for a tensor of rank %d", (long long)length, rank));
  } else {
    axes->count = (int)length;
    axes->flags = axis_flags(nz, input, rank);
  }
}

/* Attribute until opset |moved|, input since. */
static void read_axes(o3_nz_t *nz, const o3_node_t *node, int64_t moved, axes_t *axes) {
  int rank = o3_nz_rank(nz, o3_node_input(node, 0));
  *axes = (axes_t){.keep = o3_node_int(node, "keepdims", 1) != 0};
  if (node->opset < moved) {
    axes->count = o3_node_ints(nz, node, "axes", axes->list, O3_IR_MAX_RANK);
  } else if (o3_node_has_input(node, 1)) {
    read_axes_input(nz, o3_node_input(node, 1), rank, axes);
  }
  if (!mlirValueIsNull(axes->flags) || o3_nz_failed(nz)) return;
  if (axes->count == 0 && !o3_node_int(node, "noop_with_empty_axes", 0)) all_axes(axes, rank);
  for (int i = 0; i < axes->count; ++i) axes->list[i] = o3_nz_axis(nz, axes->list[i], rank);
}

/* ---- Axes that only the run knows ---- */

/* The sizes of the dimensions that are not reduced, in order: entry j is the sum over d of the size of d
 * where d is the j-th of them. */
static MlirValue kept_sizes(o3_nz_t *nz, const axes_t *axes, MlirValue sizes, int rank) {
  int64_t numbers[O3_IR_MAX_RANK];
  int kept = rank - axes->count;
  for (int i = 0; i < kept; ++i) numbers[i] = i + 1;
  MlirValue one = o3_nz_like(nz, sizes, 1), stays = o3_nz_sub(nz, one, axes->flags);
  MlirValue order =
      o3_nz_op(nz, "o3.cumulate", O3_VALUES(stays),
               O3_ATTRS({"kind", o3_nz_string_attr(nz, "sum")}, {"axis", o3_attr_i64(nz->context, 0)},
                        {"exclusive", o3_attr_bool(nz->context, false)},
                        {"reverse", o3_attr_bool(nz->context, false)}));
  MlirValue rows = o3_nz_unsqueeze(nz, o3_nz_i64s(nz, kept, numbers), 1, (int64_t[]){1});
  MlirValue chosen = o3_nz_cast(nz, o3_nz_equal(nz, rows, order), o3_nz_i64(nz));
  MlirValue terms = o3_nz_mul(nz, o3_nz_mul(nz, chosen, stays), sizes);
  return o3_nz_reduce(nz, terms, "sum", 1, (int64_t[]){1}, false);
}

static MlirValue dynamic_reduce(o3_nz_t *nz, MlirValue x, const char *kind, const axes_t *axes) {
  const o3_fact_t *from = o3_nz_fact(nz, x);
  int rank = from->shape.rank;
  o3_fact_t fact = {.element = from->element, .shape = from->shape};
  MlirValue sizes = o3_nz_sizes(nz, rank, from->shape.dims, false), result;
  MlirValue reduced = o3_nz_not(nz, o3_nz_equal(nz, axes->flags, o3_nz_like(nz, axes->flags, 0)));
  MlirValue shape = o3_nz_select(nz, reduced, o3_nz_like(nz, sizes, 1), sizes);
  if (o3_nz_bind_sizes(nz, shape, "the shape of the result", fact.shape.dims, O3_IR_MAX_RANK) != rank)
    return (MlirValue){0};
  o3_nz_op_stated(nz, "o3.dynamic_reduce", O3_VALUES(x, axes->flags),
                  O3_ATTRS({"kind", o3_nz_string_attr(nz, kind)}), 1, &fact, &result);
  return result;
}

/* The sizes of 1 that the reduction left are dropped. */
static MlirValue drop_reduced(o3_nz_t *nz, MlirValue y, const axes_t *axes, MlirValue x) {
  const o3_fact_t *from = o3_nz_fact(nz, x);
  int rank = from->shape.rank;
  o3_shape_t shape = {.rank = rank - axes->count};
  MlirValue sizes = o3_nz_sizes(nz, rank, from->shape.dims, false);
  if (shape.rank) {
    MlirValue kept = kept_sizes(nz, axes, sizes, rank);
    if (o3_nz_bind_sizes(nz, kept, "the shape of the result", shape.dims, O3_IR_MAX_RANK) != shape.rank)
      return (MlirValue){0};
  }
  return o3_nz_reshape(nz, y, &shape);
}

/* Broadcasts to x's shape. A dynamic_reduce of that shape repeats its results along what it reduces. */
static MlirValue reduce_spread(o3_nz_t *nz, MlirValue x, const char *kind, const axes_t *axes) {
  MlirValue result;
  if (mlirValueIsNull(axes->flags)) return o3_nz_reduce(nz, x, kind, axes->count, axes->list, true);
  o3_fact_t fact = {.element = o3_nz_element(nz, x), .shape = o3_nz_fact(nz, x)->shape};
  o3_nz_op_stated(nz, "o3.dynamic_reduce", O3_VALUES(x, axes->flags),
                  O3_ATTRS({"kind", o3_nz_string_attr(nz, kind)}), 1, &fact, &result);
  return result;
}

static MlirValue reduce(o3_nz_t *nz, MlirValue x, const char *kind, const axes_t *axes) {
  if (mlirValueIsNull(axes->flags)) return o3_nz_reduce(nz, x, kind, axes->count, axes->list, axes->keep);
  MlirValue y = dynamic_reduce(nz, x, kind, axes);
  return axes->keep || o3_nz_failed(nz) ? y : drop_reduced(nz, y, axes, x);
}

/* ---- Reduce* ---- */

typedef MlirValue (*formula_t)(o3_nz_t *nz, MlirValue x, const axes_t *axes);

static MlirValue f_sum(o3_nz_t *nz, MlirValue x, const axes_t *axes) { return reduce(nz, x, "sum", axes); }
static MlirValue f_mean(o3_nz_t *nz, MlirValue x, const axes_t *axes) { return reduce(nz, x, "mean", axes); }
static MlirValue f_max(o3_nz_t *nz, MlirValue x, const axes_t *axes) { return reduce(nz, x, "max", axes); }
static MlirValue f_min(o3_nz_t *nz, MlirValue x, const axes_t *axes) { return reduce(nz, x, "min", axes); }
static MlirValue f_prod(o3_nz_t *nz, MlirValue x, const axes_t *axes) { return reduce(nz, x, "prod", axes); }
static MlirValue f_sum_square(o3_nz_t *nz, MlirValue x, const axes_t *axes) {
  return reduce(nz, x, "sum_square", axes);
}
static MlirValue f_l1(o3_nz_t *nz, MlirValue x, const axes_t *axes) {
  return reduce(nz, o3_nz_unary(nz, "o3.abs", x), "sum", axes);
}
static MlirValue f_l2(o3_nz_t *nz, MlirValue x, const axes_t *axes) {
  return o3_nz_unary(nz, "o3.sqrt", reduce(nz, x, "sum_square", axes));
}
static MlirValue f_log_sum(o3_nz_t *nz, MlirValue x, const axes_t *axes) {
  return o3_nz_unary(nz, "o3.log", reduce(nz, x, "sum", axes));
}

static MlirValue finite_or_zero(o3_nz_t *nz, MlirValue x) {
  MlirAttribute yes = o3_attr_bool(nz->context, true);
  MlirValue infinite =
      o3_nz_op(nz, "o3.is_inf", O3_VALUES(x), O3_ATTRS({"positive", yes}, {"negative", yes}));
  return o3_nz_select(nz, infinite, o3_nz_like(nz, x, 0), x);
}

/* max + log(sum(e^(x - max))); an infinite max is left out, for the difference would be NaN. */
static MlirValue f_log_sum_exp(o3_nz_t *nz, MlirValue x, const axes_t *axes) {
  MlirValue shift = finite_or_zero(nz, reduce_spread(nz, x, "max", axes));
  MlirValue exps = o3_nz_unary(nz, "o3.exp", o3_nz_sub(nz, x, shift));
  MlirValue log = o3_nz_unary(nz, "o3.log", reduce(nz, exps, "sum", axes));
  MlirValue largest = finite_or_zero(nz, reduce(nz, x, "max", axes));
  return o3_nz_add(nz, log, o3_nz_reshape(nz, largest, &o3_nz_fact(nz, log)->shape));
}

/* `moved`: the opset in which axes became an input. REAL formulas compute integers in f64. */
static const struct {
  const char *onnx;
  formula_t formula;
  int64_t moved;
  enum { ANY, REAL } domain;
} FORMULAS[] = {
    {"ReduceSum", f_sum, 13, ANY},         {"ReduceMean", f_mean, 18, ANY},
    {"ReduceMax", f_max, 18, ANY},         {"ReduceMin", f_min, 18, ANY},
    {"ReduceProd", f_prod, 18, ANY},       {"ReduceSumSquare", f_sum_square, 18, ANY},
    {"ReduceL1", f_l1, 18, ANY},           {"ReduceL2", f_l2, 18, REAL},
    {"ReduceLogSum", f_log_sum, 18, REAL}, {"ReduceLogSumExp", f_log_sum_exp, 18, REAL},
};

static int find_formula(const o3_node_t *node) {
  int i = 0, count = (int)(sizeof(FORMULAS) / sizeof(FORMULAS[0]));
  while (i < count && strcmp(FORMULAS[i].onnx, node->op_type) != 0) ++i;
  O3_ASSERT(i < count, "ops with this converter have a row in FORMULAS");
  return i;
}

/* noop_with_empty_axes returns the input for a plain reduction; the ops that are made of several steps still
 * do those of one element: that is the reduction over no axes. */
o3_status_t o3_onnx_reduce(o3_nz_t *nz, o3_node_t *node) {
  int row = find_formula(node);
  MlirValue x = o3_node_input(node, 0);
  MlirType element = o3_nz_element(nz, x);
  axes_t axes;
  read_axes(nz, node, FORMULAS[row].moved, &axes);
  if (o3_nz_failed(nz)) return NULL;
  bool through_real = FORMULAS[row].domain == REAL && !o3_type_is_float(element);
  if (through_real) x = o3_nz_cast(nz, x, mlirF64TypeGet(nz->context));
  node->outputs[0] = o3_nz_cast(nz, FORMULAS[row].formula(nz, x, &axes), element);
  return NULL;
}

o3_status_t o3_onnx_arg_reduce(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), o3_nz_rank(nz, x));
  bool keep = o3_node_int(node, "keepdims", 1) != 0, last = o3_node_int(node, "select_last_index", 0) != 0;
  const char *kind = strcmp(node->op_type, "ArgMax") == 0 ? "max" : "min";
  node->outputs[0] =
      o3_nz_op(nz, "o3.arg_reduce", O3_VALUES(x),
               O3_ATTRS({"kind", o3_nz_string_attr(nz, kind)}, {"axis", o3_attr_i64(nz->context, axis)},
                        {"keepdims", o3_attr_bool(nz->context, keep)},
                        {"select_last", o3_attr_bool(nz->context, last)}));
  return NULL;
}

/* ---- CumSum, CumProd ---- */

static MlirValue cumulate(o3_nz_t *nz, const o3_node_t *node, int axis) {
  const char *kind = strcmp(node->op_type, "CumSum") == 0 ? "sum" : "prod";
  bool exclusive = o3_node_int(node, "exclusive", 0) != 0, backwards = o3_node_int(node, "reverse", 0) != 0;
  return o3_nz_op(nz, "o3.cumulate", O3_VALUES(o3_node_input(node, 0)),
                  O3_ATTRS({"kind", o3_nz_string_attr(nz, kind)}, {"axis", o3_attr_i64(nz->context, axis)},
                           {"exclusive", o3_attr_bool(nz->context, exclusive)},
                           {"reverse", o3_attr_bool(nz->context, backwards)}));
}

/* An axis that only the run knows: the sums along all of them, one of which is taken. */
static MlirValue cumulate_any(o3_nz_t *nz, const o3_node_t *node, MlirValue axis) {
  int rank = o3_nz_rank(nz, o3_node_input(node, 0));
  MlirValue flat = o3_nz_reshape(nz, o3_nz_cast(nz, axis, o3_nz_i64(nz)), &(o3_shape_t){.rank = 0});
  MlirValue positive = o3_nz_mod_number(nz, flat, rank), y = cumulate(nz, node, 0);
  for (int i = 1; i < rank; ++i)
    y = o3_nz_select(nz, o3_nz_equal(nz, positive, o3_nz_like(nz, positive, i)), cumulate(nz, node, i), y);
  return y;
}

o3_status_t o3_onnx_cumulate(o3_nz_t *nz, o3_node_t *node) {
  MlirValue input = o3_node_input(node, 1);
  int rank = o3_nz_rank(nz, o3_node_input(node, 0));
  if (rank == 0) return o3_nz_invalid(nz, "a scalar has no axis to sum along");
  int64_t axis;
  if (o3_fact_is_const(o3_nz_fact(nz, input))) {
    if (o3_nz_const_ints(nz, input, "axis", &axis, 1) == 1)
      node->outputs[0] = cumulate(nz, node, o3_nz_axis(nz, axis, rank));
  } else {
    node->outputs[0] = cumulate_any(nz, node, input);
  }
  return NULL;
}

/* ---- Softmax, LogSoftmax, Hardmax ---- */

static MlirValue softmax(o3_nz_t *nz, const o3_node_t *node, MlirValue x, int axis) {
  bool log = strcmp(node->op_type, "LogSoftmax") == 0;
  return o3_nz_op(nz, "o3.softmax", O3_VALUES(x),
                  O3_ATTRS({"axis", o3_attr_i64(nz->context, axis)},
                           {"log", log ? o3_attr_bool(nz->context, true) : mlirAttributeGetNull()}));
}

/* One at the first maximum along axis, else 0. */
static MlirValue hardmax(o3_nz_t *nz, const o3_node_t *node, MlirValue x, int axis) {
  (void)node;
  MlirAttribute number = o3_attr_i64(nz->context, axis);
  MlirValue first = o3_nz_op(nz, "o3.arg_reduce", O3_VALUES(x),
                             O3_ATTRS({"kind", o3_nz_string_attr(nz, "max")}, {"axis", number},
                                      {"keepdims", o3_attr_bool(nz->context, true)},
                                      {"select_last", o3_attr_bool(nz->context, false)}));
  o3_fact_t fact = {.element = o3_nz_i64(nz), .shape.rank = o3_nz_rank(nz, x)};
  for (int i = 0; i < fact.shape.rank; ++i)
    fact.shape.dims[i] = i == axis ? o3_nz_dim(nz, x, i) : o3_expr_const(nz->context, 1);
  MlirValue positions;
  o3_nz_op_stated(nz, "o3.iota", O3_NO_VALUES, O3_ATTRS({"axis", number}), 1, &fact, &positions);
  return o3_nz_cast(nz, o3_nz_equal(nz, first, positions), o3_nz_element(nz, x));
}

typedef MlirValue (*along_t)(o3_nz_t *nz, const o3_node_t *node, MlirValue x, int axis);

/* Before opset 13 the dimensions from axis on are one, and its default is 1. */
static MlirValue along_axis(o3_nz_t *nz, const o3_node_t *node, along_t function) {
  MlirValue x = o3_node_input(node, 0);
  const o3_shape_t shape = o3_nz_fact(nz, x)->shape;
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", node->opset < 13 ? 1 : -1), shape.rank);
  if (node->opset >= 13 || axis == shape.rank - 1) return function(nz, node, x, axis);
  o3_shape_t flat = {.rank = 2,
                     .dims = {o3_shape_product(nz->context, &shape, 0, axis),
                              o3_shape_product(nz->context, &shape, axis, shape.rank)}};
  return o3_nz_reshape(nz, function(nz, node, o3_nz_reshape(nz, x, &flat), 1), &shape);
}

o3_status_t o3_onnx_softmax(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = along_axis(nz, node, softmax);
  return NULL;
}

o3_status_t o3_onnx_hardmax(o3_nz_t *nz, o3_node_t *node) {
  node->outputs[0] = along_axis(nz, node, hardmax);
  return NULL;
}
