/* Windows of convolutions and pools. Pads that depend on sizes which only the run knows (auto_pad with a
 * stride) become a padding op of their own, so that the ops behind have constant pads. */
#include "normalize/onnx_window.h"

#include <string.h>

static MlirAffineExpr constant(const o3_nz_t *nz, int64_t value) { return o3_expr_const(nz->context, value); }

/* The attribute |name|, one entry for each spatial dimension, or |fallback| for all of them. */
static o3_status_t read_list(o3_nz_t *nz, const o3_node_t *node, const char *name, int rank, int64_t fallback,
                             int64_t *values) {
  int count = o3_node_ints(nz, node, name, values, 2 * O3_IR_MAX_RANK);
  if (o3_node_has_attr(node, name) && count != rank)
    return o3_nz_invalid(nz, "%s has %d entries, %d expected", name, count, rank);
  for (int i = count; i < rank; ++i) values[i] = fallback;
  return NULL;
}

static o3_status_t read_kernel(o3_nz_t *nz, const o3_node_t *node, MlirValue w, o3_window_t *window) {
  int64_t stated[2 * O3_IR_MAX_RANK];
  O3_TRY(read_list(nz, node, "kernel_shape", window->rank, 0, stated));
  if (mlirValueIsNull(w) && !o3_node_has_attr(node, "kernel_shape"))
    return o3_nz_invalid(nz, "the attribute kernel_shape is missing");
  if (!mlirValueIsNull(w) && o3_nz_rank(nz, w) != window->rank + 2)
    return o3_nz_invalid(nz, "weights of rank %d for an input of rank %d", o3_nz_rank(nz, w),
                         window->rank + 2);
  for (int i = 0; i < window->rank; ++i) {
    window->kernel[i] = stated[i];
    if (mlirValueIsNull(w)) continue;
    window->kernel[i] = o3_nz_static_dim(nz, w, 2 + i, "the size of a kernel");
    if (stated[i] && stated[i] != window->kernel[i])
      return o3_nz_invalid(nz, "kernel_shape entry %d is %lld but the weights have size %lld there", i,
                           (long long)stated[i], (long long)window->kernel[i]);
  }
  return NULL;
}

o3_status_t o3_window_read_sizes(o3_nz_t *nz, const o3_node_t *node, MlirValue x, MlirValue w,
                                 o3_window_t *window) {
  int64_t values[2 * O3_IR_MAX_RANK];
  memset(window, 0, sizeof(*window));
  window->rank = o3_nz_rank(nz, x) - 2;
  if (window->rank < 1)
    return o3_nz_invalid(nz, "input of rank %d, at least 3 expected (batch, channels, spatial dimensions)",
                         o3_nz_rank(nz, x));
  O3_TRY(read_kernel(nz, node, w, window));
  O3_TRY(read_list(nz, node, "strides", window->rank, 1, values));
  memcpy(window->strides, values, sizeof(window->strides));
  O3_TRY(read_list(nz, node, "dilations", window->rank, 1, values));
  memcpy(window->dilations, values, sizeof(window->dilations));
  for (int i = 0; i < window->rank; ++i) {
    window->lows[i] = window->highs[i] = constant(nz, 0);
    if (window->kernel[i] < 1 || window->strides[i] < 1 || window->dilations[i] < 1)
      return o3_nz_invalid(nz, "kernel size %lld, stride %lld and dilation %lld, all must be positive",
                           (long long)window->kernel[i], (long long)window->strides[i],
                           (long long)window->dilations[i]);
  }
  return NULL;
}

/* As many windows as the stride has starts in the input: ceil(in / stride). */
static void same_pads(o3_nz_t *nz, MlirValue x, int i, bool upper, o3_window_t *window) {
  MlirAffineExpr size = o3_nz_dim(nz, x, 2 + i), stride = constant(nz, window->strides[i]);
  int64_t extent = (window->kernel[i] - 1) * window->dilations[i] + 1;
  MlirAffineExpr count = o3_expr_ceil_div(size, stride);
  MlirAffineExpr last = o3_expr_mul(o3_expr_sub(count, constant(nz, 1)), stride);
  MlirAffineExpr total = o3_expr_sub(o3_expr_add(last, constant(nz, extent)), size);
  if (extent < window->strides[i]) total = o3_symbols_max(nz->symbols, total, constant(nz, 0));
  MlirAffineExpr half = o3_expr_floor_div(total, constant(nz, 2)), rest = o3_expr_sub(total, half);
  window->lows[i] = upper ? half : rest;
  window->highs[i] = upper ? rest : half;
}

static o3_status_t stated_pads(o3_nz_t *nz, const o3_node_t *node, o3_window_t *window) {
  int64_t pads[2 * O3_IR_MAX_RANK];
  O3_TRY(read_list(nz, node, "pads", 2 * window->rank, 0, pads));
  for (int i = 0; i < window->rank; ++i) {
    window->lows[i] = constant(nz, pads[i]);
    window->highs[i] = constant(nz, pads[window->rank + i]);
  }
  return NULL;
}

/* Constant pads go into the attribute. */
static void settle_pads(o3_window_t *window) {
  for (int i = 0; i < window->rank; ++i) {
    int64_t *low = &window->pads[i], *high = &window->pads[window->rank + i];
    bool known = o3_expr_is_const(window->lows[i], low) && o3_expr_is_const(window->highs[i], high);
    window->symbolic |= !known || *low < 0 || *high < 0;
  }
  if (window->symbolic) memset(window->pads, 0, sizeof(window->pads));
}

o3_status_t o3_window_read(o3_nz_t *nz, const o3_node_t *node, MlirValue x, MlirValue w,
                           o3_window_t *window) {
  O3_TRY(o3_window_read_sizes(nz, node, x, w, window));
  const char *mode = o3_node_string(nz, node, "auto_pad", "NOTSET");
  bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
  if (upper || lower) {
    for (int i = 0; i < window->rank; ++i) same_pads(nz, x, i, upper, window);
  } else if (strcmp(mode, "NOTSET") == 0 || mode[0] == 0) {
    O3_TRY(stated_pads(nz, node, window));
  } else if (strcmp(mode, "VALID") != 0) {
    return o3_nz_invalid(nz, "auto_pad is '%s'; NOTSET, SAME_UPPER, SAME_LOWER or VALID expected", mode);
  }
  settle_pads(window);
  return NULL;
}

MlirValue o3_nz_pad(o3_nz_t *nz, MlirValue x, const MlirAffineExpr *lows, const MlirAffineExpr *highs,
                    MlirValue value) {
  o3_fact_t fact = {.element = o3_nz_element(nz, x), .shape.rank = o3_nz_rank(nz, x)};
  MlirValue result;
  for (int i = 0; i < fact.shape.rank; ++i)
    fact.shape.dims[i] = o3_expr_add(o3_expr_add(o3_nz_dim(nz, x, i), lows[i]), highs[i]);
  o3_nz_op_stated(nz, "o3.pad", O3_VALUES(x, value),
                  O3_ATTRS({"lows", o3_nz_map_attr(nz, fact.shape.rank, lows)},
                           {"highs", o3_nz_map_attr(nz, fact.shape.rank, highs)},
                           {"mode", o3_nz_string_attr(nz, "constant")}),
                  1, &fact, &result);
  return result;
}

MlirValue o3_window_pad(o3_nz_t *nz, const o3_window_t *window, MlirValue x, double value) {
  MlirAffineExpr lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK];
  if (!window->symbolic || o3_nz_failed(nz)) return x;
  lows[0] = lows[1] = highs[0] = highs[1] = constant(nz, 0);
  for (int i = 0; i < window->rank; ++i) {
    lows[2 + i] = window->lows[i];
    highs[2 + i] = window->highs[i];
  }
  return o3_nz_pad(nz, x, lows, highs, o3_nz_like(nz, x, value));
}
