/* Padding. Constant pads stay expressions; those that only the run knows give sizes that are data symbols. */
#include <string.h>

#include "normalize/onnx_axes.h"

static bool known_mode(const char *mode) {
  static const char *const MODES[] = {"constant", "edge", "reflect", "wrap"};
  for (int i = 0; i < 4; ++i) {
    if (strcmp(MODES[i], mode) == 0) return true;
  }
  return false;
}

static bool all_zero(int count, const MlirAffineExpr *exprs) {
  for (int i = 0; i < count; ++i) {
    if (!o3_expr_equals_const(exprs[i], 0)) return false;
  }
  return true;
}

/* Whether the padded size can be counted, as far as it is known. */
static bool fits(MlirAffineExpr size, MlirAffineExpr low, MlirAffineExpr high) {
  int64_t sum = 0, parts[3] = {0};
  MlirAffineExpr exprs[] = {size, low, high};
  for (int i = 0; i < 3; ++i) {
    if (o3_expr_is_const(exprs[i], &parts[i]) && __builtin_add_overflow(sum, parts[i], &sum)) return false;
  }
  return true;
}

/* |pads|: begins, then ends, for every dimension. */
static MlirValue pad_known(o3_nz_t *nz, MlirValue x, MlirValue value, const MlirAffineExpr *pads,
                           const char *mode) {
  const o3_fact_t *from = o3_nz_fact(nz, x);
  int rank = from->shape.rank;
  o3_fact_t fact = {.element = from->element, .shape.rank = rank};
  if (all_zero(2 * rank, pads)) return x;
  for (int i = 0; i < rank; ++i) {
    if (!fits(o3_nz_dim(nz, x, i), pads[i], pads[rank + i]))
      o3_nz_fail(nz, o3_nz_invalid(nz, "its result would have more elements than can be addressed"));
    MlirAffineExpr size = o3_expr_add(o3_expr_add(o3_nz_dim(nz, x, i), pads[i]), pads[rank + i]);
    fact.shape.dims[i] = size;
    if (!o3_symbols_require_nonnegative(nz->symbols, size, nz->who))
      o3_nz_fail(nz, o3_nz_invalid(nz, "the pads of dimension %d take more away than there is", i));
  }
  MlirValue result;
  o3_nz_op_stated(
      nz, "o3.pad", O3_VALUES(x, value),
      O3_ATTRS({"lows", o3_nz_map_attr(nz, rank, pads)}, {"highs", o3_nz_map_attr(nz, rank, pads + rank)},
               {"mode", o3_nz_string_attr(nz, mode)}),
      1, &fact, &result);
  return result;
}

static MlirValue pad_at_run(o3_nz_t *nz, MlirValue x, MlirValue value, MlirValue lows, MlirValue highs,
                            const char *mode) {
  const o3_fact_t *from = o3_nz_fact(nz, x);
  o3_fact_t fact = {.element = from->element, .shape.rank = from->shape.rank};
  MlirValue sizes = o3_nz_binary(nz, "o3.add", o3_onnx_dims(nz, x), o3_nz_binary(nz, "o3.add", lows, highs));
  if (o3_nz_bind_sizes(nz, sizes, "the padded shape", fact.shape.dims, O3_IR_MAX_RANK) < 0)
    return (MlirValue){0};
  MlirValue result;
  o3_nz_op_stated(nz, "o3.dynamic_pad", O3_VALUES(x, value, lows),
                  O3_ATTRS({"mode", o3_nz_string_attr(nz, mode)}), 1, &fact, &result);
  return result;
}

static MlirValue pad(o3_nz_t *nz, MlirValue x, MlirValue value, MlirValue lows, MlirValue highs,
                     const char *mode) {
  MlirAffineExpr exprs[2 * O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x);
  bool known =
      o3_nz_exprs(nz, lows, exprs, rank) == rank && o3_nz_exprs(nz, highs, exprs + rank, rank) == rank;
  return known ? pad_known(nz, x, value, exprs, mode) : pad_at_run(nz, x, value, lows, highs, mode);
}

/* The value is an input from opset 11 on; by default 0. */
static MlirValue pad_value(o3_nz_t *nz, const o3_node_t *node, MlirValue x) {
  if (node->opset < 11) return o3_nz_like(nz, x, o3_node_float(node, "value", 0));
  if (!o3_node_has_input(node, 2)) return o3_nz_like(nz, x, 0);
  return o3_nz_reshape(nz, o3_nz_cast(nz, o3_node_input(node, 2), o3_nz_element(nz, x)), &(o3_shape_t){0});
}

/* begins and ends for |count| axes, as two vectors. */
static void halves(o3_nz_t *nz, MlirValue pads, int count, MlirValue *lows, MlirValue *highs) {
  MlirAffineExpr zero = o3_expr_const(nz->context, 0), half = o3_expr_const(nz->context, count);
  *lows = o3_nz_slice(nz, pads, 0, zero, half);
  *highs = o3_nz_slice(nz, pads, 0, half, half);
}

o3_status_t o3_onnx_pad(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), lows, highs;
  int rank = o3_nz_rank(nz, x);
  const char *mode = o3_node_string(nz, node, "mode", "constant");
  if (!known_mode(mode)) return o3_nz_invalid(nz, "there is no padding mode '%s'", mode);
  MlirValue pads =
      o3_onnx_list_read(nz, node, (o3_onnx_list_t){node->opset < 2 ? "paddings" : "pads", 1, 11});
  if (mlirValueIsNull(pads)) return o3_nz_invalid(nz, "there are no pads");
  MlirValue axes =
      node->opset >= 18 ? o3_onnx_list_read(nz, node, (o3_onnx_list_t){"axes", 3, 18}) : (MlirValue){0};
  int64_t count = mlirValueIsNull(axes) ? rank : o3_nz_static_dim(nz, axes, 0, "the number of axes");
  if (o3_nz_failed(nz)) return NULL;
  if (!o3_symbols_require_equal(nz->symbols, o3_nz_dim(nz, pads, 0), o3_expr_const(nz->context, 2 * count),
                                nz->who))
    return o3_nz_invalid(nz, "the pads are not two for each of %lld axes", (long long)count);
  halves(nz, pads, (int)count, &lows, &highs);
  if (!mlirValueIsNull(axes)) {
    lows = o3_onnx_axes_spread(nz, axes, lows, o3_onnx_i64(nz, 0), rank);
    highs = o3_onnx_axes_spread(nz, axes, highs, o3_onnx_i64(nz, 0), rank);
  }
  node->outputs[0] = pad(nz, x, pad_value(nz, node, x), lows, highs, mode);
  return NULL;
}
