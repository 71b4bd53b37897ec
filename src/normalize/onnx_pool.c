/* Pooling: over windows, and over all of the spatial dimensions. */
#include <math.h>
#include <string.h>

#include "normalize/onnx_window.h"

enum { MAX_POOL_ATTRS = 8 };

static int window_attrs(o3_nz_t *nz, const o3_node_t *node, const o3_window_t *window, o3_attr_t *attrs) {
  int rank = window->rank;
  bool ceil = o3_node_int(node, "ceil_mode", 0) != 0;
  attrs[0] = (o3_attr_t){"kernel", o3_nz_ints_attr(nz, rank, window->kernel)};
  attrs[1] = (o3_attr_t){"strides", o3_nz_ints_attr(nz, rank, window->strides)};
  attrs[2] = (o3_attr_t){"dilations", o3_nz_ints_attr(nz, rank, window->dilations)};
  attrs[3] = (o3_attr_t){"pads", o3_nz_ints_attr(nz, 2 * rank, window->pads)};
  attrs[4] = (o3_attr_t){"ceil_mode", o3_attr_bool(nz->context, ceil)};
  return 5;
}

/* The value that never wins a maximum. */
static double lowest(MlirType element) {
  if (o3_type_is_float(element)) return -INFINITY;
  return o3_type_is_unsigned(element) ? 0 : -ldexp(1, o3_type_bits(element) - 1);
}

static o3_status_t max_pool_indices(o3_nz_t *nz, o3_node_t *node, const o3_window_t *window) {
  o3_attr_t attrs[MAX_POOL_ATTRS];
  MlirValue x = o3_node_input(node, 0);
  bool column_major = o3_node_int(node, "storage_order", 0) != 0;
  if (window->symbolic)
    return o3_nz_unsupported(nz,
                             "Indices with pads that are negative or depend on sizes known at run time only");
  int count = window_attrs(nz, node, window, attrs);
  attrs[count++] = (o3_attr_t){"column_major", o3_attr_bool(nz->context, column_major)};
  o3_nz_op_results(nz, "o3.max_pool_indices", O3_VALUES(x), count, attrs, 2, node->outputs);
  return NULL;
}

o3_status_t o3_onnx_max_pool(o3_nz_t *nz, o3_node_t *node) {
  o3_window_t window;
  o3_attr_t attrs[MAX_POOL_ATTRS];
  MlirValue x = o3_node_input(node, 0);
  O3_TRY(o3_window_read(nz, node, x, (MlirValue){0}, &window));
  if (node->num_outputs > 1 && node->wanted[1]) return max_pool_indices(nz, node, &window);
  MlirValue padded = o3_window_pad(nz, &window, x, lowest(o3_nz_element(nz, x)));
  int count = window_attrs(nz, node, &window, attrs);
  node->outputs[0] = o3_nz_op(nz, "o3.max_pool", O3_VALUES(padded), count, attrs);
  return NULL;
}

/* ---- Averages and sums ---- */

static MlirValue avg_pool(o3_nz_t *nz, const o3_node_t *node, const o3_window_t *window, MlirValue x,
                          bool include_pad, bool sum) {
  o3_attr_t attrs[MAX_POOL_ATTRS];
  int count = window_attrs(nz, node, window, attrs);
  attrs[count++] = (o3_attr_t){"count_include_pad", o3_attr_bool(nz->context, include_pad)};
  if (sum) attrs[count++] = (o3_attr_t){"sum", o3_attr_bool(nz->context, true)};
  return o3_nz_op(nz, "o3.avg_pool", O3_VALUES(x), count, attrs);
}

/* Symbolic pads are elements like any others by now: the sums of x are divided by those of ones. */
static MlirValue avg_of_padded(o3_nz_t *nz, const o3_node_t *node, const o3_window_t *window, MlirValue x) {
  o3_shape_t shape = {.rank = window->rank + 2};
  for (int i = 0; i < shape.rank; ++i)
    shape.dims[i] = i < 2 ? o3_expr_const(nz->context, 1) : o3_nz_dim(nz, x, i);
  MlirValue ones = o3_nz_filled(nz, &shape, o3_nz_element(nz, x), 1);
  MlirValue sums = avg_pool(nz, node, window, o3_window_pad(nz, window, x, 0), false, true);
  MlirValue counts = avg_pool(nz, node, window, o3_window_pad(nz, window, ones, 0), false, true);
  return o3_nz_binary(nz, "o3.div", sums, counts);
}

o3_status_t o3_onnx_average_pool(o3_nz_t *nz, o3_node_t *node) {
  o3_window_t window;
  MlirValue x = o3_node_input(node, 0);
  bool include_pad = o3_node_int(node, "count_include_pad", 0) != 0;
  O3_TRY(o3_window_read(nz, node, x, (MlirValue){0}, &window));
  if (window.symbolic && !include_pad) {
    node->outputs[0] = avg_of_padded(nz, node, &window, x);
  } else {
    node->outputs[0] = avg_pool(nz, node, &window, o3_window_pad(nz, &window, x, 0), include_pad, false);
  }
  return NULL;
}

/* ---- p-norms ---- */

static MlirValue power(o3_nz_t *nz, MlirValue x, double exponent) {
  return o3_nz_binary(nz, "o3.pow", x, o3_nz_like(nz, x, exponent));
}

/* p was a float in opset 1. */
static double norm_order(const o3_node_t *node) {
  return o3_node_float(node, "p", (double)o3_node_int(node, "p", 2));
}

/* The sum of |x|^p over each window, to the power 1/p. */
o3_status_t o3_onnx_lp_pool(o3_nz_t *nz, o3_node_t *node) {
  o3_window_t window;
  MlirValue x = o3_node_input(node, 0);
  double p = norm_order(node);
  O3_TRY(o3_window_read(nz, node, x, (MlirValue){0}, &window));
  if (!(p > 0)) return o3_nz_invalid(nz, "p is %g, it must be positive", p);
  MlirValue powers = power(nz, o3_nz_unary(nz, "o3.abs", x), p);
  MlirValue sums = avg_pool(nz, node, &window, o3_window_pad(nz, &window, powers, 0), false, true);
  node->outputs[0] = power(nz, sums, 1 / p);
  return NULL;
}

/* ---- Over everything ---- */

static o3_status_t reduce_spatial(o3_nz_t *nz, MlirValue x, const char *kind, MlirValue *result) {
  int64_t axes[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x), count = 0;
  if (rank < 3) return o3_nz_invalid(nz, "input of rank %d, at least 3 expected", rank);
  for (int i = 2; i < rank; ++i) axes[count++] = i;
  *result = o3_nz_reduce(nz, x, kind, count, axes, true);
  return NULL;
}

o3_status_t o3_onnx_global_average_pool(o3_nz_t *nz, o3_node_t *node) {
  return reduce_spatial(nz, o3_node_input(node, 0), "mean", &node->outputs[0]);
}

o3_status_t o3_onnx_global_max_pool(o3_nz_t *nz, o3_node_t *node) {
  return reduce_spatial(nz, o3_node_input(node, 0), "max", &node->outputs[0]);
}

o3_status_t o3_onnx_global_lp_pool(o3_nz_t *nz, o3_node_t *node) {
  double p = norm_order(node);
  MlirValue sum;
  if (!(p > 0)) return o3_nz_invalid(nz, "p is %g, it must be positive", p);
  MlirValue powers = power(nz, o3_nz_unary(nz, "o3.abs", o3_node_input(node, 0)), p);
  O3_TRY(reduce_spatial(nz, powers, "sum", &sum));
  node->outputs[0] = power(nz, sum, 1 / p);
  return NULL;
}

/* ---- Undone ---- */

/* Where output_shape is larger than what the pool's attributes give, the result is in its leading corner. */
static o3_status_t grow(o3_nz_t *nz, o3_node_t *node, MlirValue y) {
  MlirAffineExpr wanted[O3_IR_MAX_RANK], lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, y);
  int count = o3_nz_bind_sizes(nz, o3_node_input(node, 2), "output_shape", wanted, O3_IR_MAX_RANK);
  if (o3_nz_failed(nz)) return NULL;
  if (count != rank) return o3_nz_invalid(nz, "output_shape has %d entries, %d expected", count, rank);
  for (int i = 0; i < rank; ++i) {
    lows[i] = o3_expr_const(nz->context, 0);
    highs[i] = o3_expr_sub(wanted[i], o3_nz_dim(nz, y, i));
  }
  node->outputs[0] = o3_nz_pad(nz, y, lows, highs, o3_nz_like(nz, y, 0));
  return NULL;
}

/* Indices are flat ones into the tensor that was pooled. */
o3_status_t o3_onnx_max_unpool(o3_nz_t *nz, o3_node_t *node) {
  o3_window_t window;
  MlirValue x = o3_node_input(node, 0), indices = o3_node_input(node, 1);
  O3_TRY(o3_window_read(nz, node, x, (MlirValue){0}, &window));
  o3_shape_t shape = o3_nz_fact(nz, x)->shape;
  for (int i = 0; i < window.rank; ++i) {
    int64_t rest = window.kernel[i] - window.strides[i] - window.pads[i] - window.pads[window.rank + i];
    MlirAffineExpr steps =
        o3_expr_mul(o3_nz_dim(nz, x, 2 + i), o3_expr_const(nz->context, window.strides[i]));
    shape.dims[2 + i] = o3_expr_add(steps, o3_expr_const(nz->context, rest));
  }
  o3_shape_t flat = {.rank = 1, .dims = {o3_shape_product(nz->context, &shape, 0, shape.rank)}};
  o3_shape_t list = {.rank = 1};
  const o3_fact_t *fact = o3_nz_fact(nz, x);
  list.dims[0] = o3_shape_product(nz->context, &fact->shape, 0, fact->shape.rank);
  MlirValue zeros = o3_nz_filled(nz, &flat, o3_nz_element(nz, x), 0);
  MlirValue flat_indices = o3_nz_reshape(nz, indices, &list), values = o3_nz_reshape(nz, x, &list);
  MlirValue scattered =
      o3_nz_op(nz, "o3.scatter_elements", O3_VALUES(zeros, flat_indices, values),
               O3_ATTRS({"axis", o3_attr_i64(nz->context, 0)}, {"reduction", o3_nz_string_attr(nz, "none")}));
  MlirValue y = o3_nz_reshape(nz, scattered, &shape);
  node->outputs[0] = y;
  return o3_node_has_input(node, 2) ? grow(nz, node, y) : NULL;
}
