/* Slices, splits, joins and padding. Sizes stay expressions of the model's symbols as long as the parameters
 * are: that keeps every shape behind them known. Parameters that only the run knows become vectors of
 * numbers, and the sizes that follow from them data symbols. */
#include <string.h>

#include "normalize/onnx_axes.h"

/* ---- Concat ---- */

o3_status_t o3_onnx_concat(o3_nz_t *nz, o3_node_t *node) {
  if (node->num_inputs == 0) return o3_nz_invalid(nz, "nothing to concatenate");
  if (node->opset >= 4 && !o3_node_has_attr(node, "axis"))
    return o3_nz_invalid(nz, "the attribute axis is missing");
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 1), o3_nz_rank(nz, node->inputs[0]));
  node->outputs[0] = o3_nz_concat(nz, axis, node->num_inputs, node->inputs);
  return NULL;
}

/* ---- Split ---- */

/* All parts have the size of the first but the last one, which from opset 18 on may be smaller. */
static o3_status_t equal_parts(o3_nz_t *nz, const o3_node_t *node, MlirAffineExpr total, int count,
                               MlirAffineExpr *sizes) {
  MlirAffineExpr parts = o3_expr_const(nz->context, count);
  bool uneven = node->opset >= 18;
  MlirAffineExpr part = uneven ? o3_expr_ceil_div(total, parts) : o3_expr_floor_div(total, parts);
  MlirAffineExpr last =
      uneven ? o3_expr_sub(total, o3_expr_mul(part, o3_expr_const(nz->context, count - 1))) : part;
  bool fits = uneven ? o3_symbols_require_nonnegative(nz->symbols, last, nz->who)
                     : o3_symbols_require_equal(nz->symbols, o3_expr_mul(part, parts), total, nz->who);
  if (!fits) return o3_nz_invalid(nz, "the dimension cannot be split into %d parts", count);
  for (int i = 0; i < count; ++i) sizes[i] = i == count - 1 ? last : part;
  return NULL;
}

static o3_status_t given_parts(o3_nz_t *nz, MlirValue split, MlirAffineExpr total, int count,
                               MlirAffineExpr *sizes) {
  int given = o3_nz_bind_sizes(nz, split, "the sizes of a split", sizes, O3_NODE_MAX_OUTPUTS);
  if (given < 0) return NULL;
  if (given != count) return o3_nz_invalid(nz, "%d sizes for %d outputs", given, count);
  MlirAffineExpr sum = o3_expr_const(nz->context, 0);
  for (int i = 0; i < count; ++i) sum = o3_expr_add(sum, sizes[i]);
  if (!o3_symbols_require_equal(nz->symbols, sum, total, nz->who))
    return o3_nz_invalid(nz, "the sizes do not add up to that of the dimension");
  return NULL;
}

/* Opset 1 takes the sizes from either place, and has no default axis. */
static o3_status_t read_split(o3_nz_t *nz, const o3_node_t *node, MlirValue *split) {
  if (node->opset < 2 && !o3_node_has_attr(node, "axis"))
    return o3_nz_invalid(nz, "the attribute axis is missing, which has no default before opset 2");
  bool input = node->opset < 2 && o3_node_has_input(node, 1);
  *split = o3_onnx_list_read(nz, node, (o3_onnx_list_t){"split", 1, input ? 1 : 13});
  return NULL;
}

o3_status_t o3_onnx_split(o3_nz_t *nz, o3_node_t *node) {
  MlirAffineExpr sizes[O3_NODE_MAX_OUTPUTS];
  MlirValue x = o3_node_input(node, 0), split;
  O3_TRY(read_split(nz, node, &split));
  int axis = o3_nz_axis(nz, o3_node_int(node, "axis", 0), o3_nz_rank(nz, x));
  MlirAffineExpr total = o3_nz_dim(nz, x, axis), start = o3_expr_const(nz->context, 0);
  int64_t wanted = o3_node_int(node, "num_outputs", node->num_outputs);
  if (wanted != node->num_outputs)
    return o3_nz_invalid(nz, "num_outputs is %lld but there are %d outputs", (long long)wanted,
                         node->num_outputs);
  if (mlirValueIsNull(split)) {
    O3_TRY(equal_parts(nz, node, total, node->num_outputs, sizes));
  } else {
    O3_TRY(given_parts(nz, split, total, node->num_outputs, sizes));
  }
  for (int i = 0; i < node->num_outputs && !o3_nz_failed(nz); ++i) {
    node->outputs[i] = o3_nz_slice(nz, x, axis, start, sizes[i]);
    start = o3_expr_add(start, sizes[i]);
  }
  return NULL;
}

/* ---- Slice, with bounds that are expressions ---- */

/* Bounds beyond these mean "to the end", as exporters write INT32_MAX or INT64_MAX. */
static const int64_t FAR = INT32_MAX;

typedef struct range {
  MlirAffineExpr start, size;
} range_t;

static bool is_far(MlirAffineExpr bound, int64_t sign) {
  int64_t value;
  return o3_expr_is_const(bound, &value) && (sign > 0 ? value >= FAR : value <= -FAR);
}

/* Negative bounds count from the end. An expression whose sign is open must not turn out on the other side.
 */
static MlirAffineExpr from_front(o3_nz_t *nz, MlirAffineExpr bound, MlirAffineExpr size) {
  MlirAffineExpr zero = o3_expr_const(nz->context, 0), negated = o3_expr_sub(zero, bound);
  if (o3_expr_at_least(bound, 0)) return bound;
  if (o3_expr_at_least(negated, 1)) return o3_expr_add(size, bound);
  bool from_end = o3_expr_at_least(negated, 0);
  MlirAffineExpr needed = from_end ? o3_expr_sub(negated, o3_expr_const(nz->context, 1)) : bound;
  if (!o3_symbols_require_nonnegative(nz->symbols, needed, nz->who))
    o3_nz_fail(nz, o3_nz_invalid(nz, "the sign of a bound is not known"));
  return from_end ? o3_expr_add(size, bound) : bound;
}

/* max(0, ceil(length / step)) */
static MlirAffineExpr count_steps(o3_nz_t *nz, MlirAffineExpr length, int64_t step) {
  MlirAffineExpr most = o3_expr_add(length, o3_expr_const(nz->context, step - 1));
  if (o3_expr_at_least(most, 0)) return o3_expr_floor_div(most, o3_expr_const(nz->context, step));
  MlirAffineExpr positive = o3_symbols_max(nz->symbols, length, o3_expr_const(nz->context, 0));
  return o3_expr_floor_div(o3_expr_add(positive, o3_expr_const(nz->context, step - 1)),
                           o3_expr_const(nz->context, step));
}

/* The start need not be clamped to the size: nothing is read from behind it, since the size is then 0. */
static range_t forward_range(o3_nz_t *nz, MlirAffineExpr start, MlirAffineExpr end, int64_t step,
                             MlirAffineExpr size) {
  MlirAffineExpr zero = o3_expr_const(nz->context, 0);
  bool to_end = is_far(end, 1);
  if (is_far(start, 1) || is_far(end, -1)) return (range_t){zero, zero};
  start = is_far(start, -1) ? zero : from_front(nz, start, size);
  end = to_end ? size : o3_symbols_min(nz->symbols, from_front(nz, end, size), size);
  if (to_end && step == 1 && !o3_expr_at_least(start, 0)) { /* the last k */
    MlirAffineExpr last = o3_symbols_min(nz->symbols, size, o3_expr_sub(size, start));
    return (range_t){o3_expr_sub(size, last), last};
  }
  start = o3_symbols_max(nz->symbols, start, zero);
  return (range_t){start, count_steps(nz, o3_expr_sub(end, start), step)};
}

static range_t backward_range(o3_nz_t *nz, MlirAffineExpr start, MlirAffineExpr end, int64_t step,
                              MlirAffineExpr size) {
  MlirAffineExpr zero = o3_expr_const(nz->context, 0), before = o3_expr_const(nz->context, -1);
  MlirAffineExpr last = o3_expr_sub(size, o3_expr_const(nz->context, 1));
  if (is_far(start, -1) || is_far(end, 1)) return (range_t){zero, zero};
  start = is_far(start, 1) ? last : o3_symbols_min(nz->symbols, from_front(nz, start, size), last);
  end = is_far(end, -1) ? before : o3_symbols_max(nz->symbols, from_front(nz, end, size), before);
  return (range_t){start, count_steps(nz, o3_expr_sub(start, end), -step)};
}

/* Entries of a vector whose contents are known, for a dense row-major box of a tracked tensor. */
static void slice_known(o3_nz_t *nz, const o3_fact_t *x, int count, const int64_t *axes,
                        const MlirAffineExpr *starts, const int64_t *steps, o3_fact_t *y) {
  int64_t total = o3_infer_small_count(&y->shape), start;
  o3_element_t *elements = x->elements ? o3_infer_elements(nz->arena, total) : NULL;
  if (!elements) return;
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (int d = y->shape.rank - 1; d >= 0; --d) {
      int64_t size = mlirAffineConstantExprGetValue(y->shape.dims[d]), at = rest % size;
      for (int k = 0; k < count; ++k) {
        if (axes[k] != d) continue;
        if (!o3_expr_is_const(starts[k], &start)) return;
        at = start + at * steps[k];
      }
      rest /= size;
      from += at * stride;
      stride *= mlirAffineConstantExprGetValue(x->shape.dims[d]);
    }
    elements[i] = x->elements[from];
  }
  y->elements = elements;
  y->num_elements = (int)total;
}

static MlirValue build_slice(o3_nz_t *nz, MlirValue x, int count, const int64_t *axes, const range_t *ranges,
                             const int64_t *steps) {
  MlirAffineExpr starts[O3_IR_MAX_RANK];
  MlirValue result;
  if (o3_nz_failed(nz)) return (MlirValue){0};
  const o3_fact_t *from = o3_nz_fact(nz, x);
  o3_fact_t fact = {.element = from->element, .shape.rank = from->shape.rank};
  bool whole = true;
  for (int i = 0; i < fact.shape.rank; ++i) fact.shape.dims[i] = o3_nz_dim(nz, x, i);
  for (int i = 0; i < count; ++i) {
    whole = whole && steps[i] == 1 && o3_expr_equal(ranges[i].size, fact.shape.dims[axes[i]]);
    starts[i] = ranges[i].start;
    fact.shape.dims[axes[i]] = ranges[i].size;
  }
  if (whole) return x;
  slice_known(nz, from, count, axes, starts, steps, &fact);
  o3_nz_op_stated(
      nz, "o3.slice", O3_VALUES(x),
      O3_ATTRS({"axes", o3_nz_ints_attr(nz, count, axes)}, {"starts", o3_nz_map_attr(nz, count, starts)},
               {"steps", o3_nz_ints_attr(nz, count, steps)}),
      1, &fact, &result);
  return result;
}

/* ---- Slice, with bounds that only the run knows ---- */

typedef struct slice_bounds {
  int count; /* of axes */
  int64_t axes[O3_IR_MAX_RANK];
  MlirValue starts, ends, steps; /* i64 vectors of that length */
} slice_bounds_t;

static MlirValue pick(o3_nz_t *nz, MlirValue condition, MlirValue a, MlirValue b) {
  return o3_nz_select(nz, condition, a, b);
}

/* max(low, min(high, x)) with x counted from the end where it is negative. */
static MlirValue clamp_bound(o3_nz_t *nz, MlirValue x, MlirValue sizes, MlirValue low, MlirValue high) {
  MlirValue below = o3_nz_binary(nz, "o3.min", o3_onnx_from_end(nz, x, sizes), high);
  return o3_nz_binary(nz, "o3.max", below, low);
}

/* A step of 0 gives the size -1, which ends the run. */
static MlirValue run_sizes(o3_nz_t *nz, MlirValue length, MlirValue steps) {
  MlirValue zero = o3_onnx_i64(nz, 0), one = o3_onnx_i64(nz, 1), bad = o3_onnx_i64(nz, -1);
  MlirValue stride = o3_nz_binary(nz, "o3.max", o3_nz_unary(nz, "o3.abs", steps), one);
  MlirValue most = o3_nz_binary(nz, "o3.add", o3_nz_binary(nz, "o3.max", length, zero),
                                o3_nz_binary(nz, "o3.sub", stride, one));
  MlirValue count = o3_nz_binary(nz, "o3.div", most, stride);
  return pick(nz, o3_nz_binary(nz, "o3.equal", steps, zero), bad, count);
}

static MlirValue slice_at_run(o3_nz_t *nz, MlirValue x, const slice_bounds_t *bounds) {
  MlirAffineExpr sizes[O3_IR_MAX_RANK];
  int64_t count = bounds->count;
  for (int i = 0; i < count; ++i) sizes[i] = o3_nz_dim(nz, x, (int)bounds->axes[i]);
  MlirValue dims = o3_nz_sizes(nz, (int)count, sizes, false);
  MlirValue zero = o3_onnx_i64(nz, 0), one = o3_onnx_i64(nz, 1), before = o3_onnx_i64(nz, -1);
  MlirValue forward = o3_nz_binary(nz, "o3.less", zero, bounds->steps);
  MlirValue low = pick(nz, forward, zero, before);
  MlirValue high = pick(nz, forward, dims, o3_nz_binary(nz, "o3.sub", dims, one));
  MlirValue start = clamp_bound(nz, bounds->starts, dims, low, high);
  MlirValue end = clamp_bound(nz, bounds->ends, dims, low, high);
  MlirValue length =
      pick(nz, forward, o3_nz_binary(nz, "o3.sub", end, start), o3_nz_binary(nz, "o3.sub", start, end));
  if (o3_nz_bind_sizes(nz, run_sizes(nz, length, bounds->steps), "the size of a slice", sizes,
                       O3_IR_MAX_RANK) < 0)
    return (MlirValue){0};
  const o3_fact_t *from = o3_nz_fact(nz, x);
  o3_fact_t fact = {.element = from->element, .shape = from->shape};
  MlirValue result;
  for (int i = 0; i < count; ++i) fact.shape.dims[bounds->axes[i]] = sizes[i];
  o3_nz_op_stated(nz, "o3.dynamic_slice", O3_VALUES(x, start, bounds->steps),
                  O3_ATTRS({"axes", o3_nz_ints_attr(nz, (int)count, bounds->axes)}), 1, &fact, &result);
  return result;
}

/* Axes that only the run knows: bounds for every dimension. */
static void spread_bounds(o3_nz_t *nz, MlirValue x, MlirValue axes, slice_bounds_t *bounds) {
  bounds->count = o3_nz_rank(nz, x);
  for (int i = 0; i < bounds->count; ++i) bounds->axes[i] = i;
  bounds->starts = o3_onnx_axes_spread(nz, axes, bounds->starts, o3_onnx_i64(nz, 0), bounds->count);
  bounds->ends = o3_onnx_axes_spread(nz, axes, bounds->ends, o3_onnx_i64(nz, INT64_MAX), bounds->count);
  bounds->steps = o3_onnx_axes_spread(nz, axes, bounds->steps, o3_onnx_i64(nz, 1), bounds->count);
}

/* ---- Slice ---- */

static bool const_list(const o3_nz_t *nz, MlirValue vector, int64_t *values) {
  MlirAffineExpr exprs[O3_IR_MAX_RANK];
  int count = o3_nz_exprs(nz, vector, exprs, O3_IR_MAX_RANK);
  for (int i = 0; i < count; ++i) {
    if (!o3_expr_is_const(exprs[i], &values[i])) return false;
  }
  return count >= 0;
}

static MlirValue slice(o3_nz_t *nz, MlirValue x, const slice_bounds_t *bounds) {
  MlirAffineExpr starts[O3_IR_MAX_RANK], ends[O3_IR_MAX_RANK];
  int64_t steps[O3_IR_MAX_RANK];
  range_t ranges[O3_IR_MAX_RANK];
  int num_starts = o3_nz_exprs(nz, bounds->starts, starts, O3_IR_MAX_RANK);
  int num_ends = o3_nz_exprs(nz, bounds->ends, ends, O3_IR_MAX_RANK);
  if (num_starts < 0 || num_ends < 0 || !const_list(nz, bounds->steps, steps))
    return slice_at_run(nz, x, bounds);
  for (int i = 0; i < bounds->count; ++i) {
    MlirAffineExpr size = o3_nz_dim(nz, x, (int)bounds->axes[i]);
    if (steps[i] == 0) o3_nz_fail(nz, o3_nz_invalid(nz, "a step of 0"));
    ranges[i] = steps[i] > 0 ? forward_range(nz, starts[i], ends[i], steps[i], size)
                             : backward_range(nz, starts[i], ends[i], steps[i], size);
    if (o3_nz_failed(nz)) return (MlirValue){0};
  }
  return build_slice(nz, x, bounds->count, bounds->axes, ranges, steps);
}

/* Vectors of equal length, of which steps and axes may be left out. */
static o3_status_t read_bounds(o3_nz_t *nz, const o3_node_t *node, MlirValue *axes, slice_bounds_t *bounds) {
  int64_t numbers[O3_IR_MAX_RANK], ones[O3_IR_MAX_RANK];
  bounds->starts = o3_onnx_list_read(nz, node, (o3_onnx_list_t){"starts", 1, 10});
  bounds->ends = o3_onnx_list_read(nz, node, (o3_onnx_list_t){"ends", 2, 10});
  *axes = o3_onnx_list_read(nz, node, (o3_onnx_list_t){"axes", 3, 10});
  bounds->steps =
      node->opset >= 10 ? o3_onnx_list_read(nz, node, (o3_onnx_list_t){"steps", 4, 10}) : (MlirValue){0};
  if (mlirValueIsNull(bounds->starts) || mlirValueIsNull(bounds->ends))
    return o3_nz_invalid(nz, "a required input is missing");
  int64_t count = o3_nz_static_dim(nz, bounds->starts, 0, "the number of starts");
  if (count > O3_IR_MAX_RANK) return o3_nz_invalid(nz, "%lld starts, more than dimensions", (long long)count);
  for (int i = 0; i < count; ++i) {
    numbers[i] = i;
    ones[i] = 1;
  }
  if (mlirValueIsNull(*axes)) *axes = o3_nz_i64s(nz, (int)count, numbers);
  if (mlirValueIsNull(bounds->steps)) bounds->steps = o3_nz_i64s(nz, (int)count, ones);
  const MlirValue lists[] = {bounds->ends, *axes, bounds->steps};
  for (int i = 0; i < 3; ++i) {
    if (!o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, lists[i], 0), o3_nz_dim(nz, bounds->starts, 0),
                                  nz->who))
      return o3_nz_invalid(nz, "starts, ends, axes and steps have different lengths");
  }
  bounds->count = (int)count;
  return NULL;
}

o3_status_t o3_onnx_slice(o3_nz_t *nz, o3_node_t *node) {
  slice_bounds_t bounds = {0};
  MlirValue x = o3_node_input(node, 0), axes;
  O3_TRY(read_bounds(nz, node, &axes, &bounds));
  if (o3_nz_failed(nz)) return NULL;
  if (o3_onnx_axes_const(nz, axes, o3_nz_rank(nz, x), bounds.axes) < 0) spread_bounds(nz, x, axes, &bounds);
  node->outputs[0] = slice(nz, x, &bounds);
  return NULL;
}
