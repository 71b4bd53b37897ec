/* Convolutions. */
#include <string.h>

#include "normalize/onnx_window.h"

/* x * w + b with the window's constant pads; |acc| null keeps the type of x. */
static MlirValue build_conv(o3_nz_t *nz, const o3_window_t *window, int64_t group, int count,
                            const MlirValue *operands, MlirType acc) {
  int rank = window->rank;
  return o3_nz_op(nz, "o3.conv", count, operands,
                  O3_ATTRS({"strides", o3_nz_ints_attr(nz, rank, window->strides)},
                           {"dilations", o3_nz_ints_attr(nz, rank, window->dilations)},
                           {"pads", o3_nz_ints_attr(nz, 2 * rank, window->pads)},
                           {"group", o3_attr_i64(nz->context, group)},
                           {"acc", acc.ptr ? o3_attr_type(acc) : mlirAttributeGetNull()}));
}

o3_status_t o3_nz_conv(o3_nz_t *nz, const o3_node_t *node, int count, const MlirValue *operands, MlirType acc,
                       MlirValue *result) {
  o3_window_t window;
  if (count < 2 || mlirValueIsNull(operands[0]) || mlirValueIsNull(operands[1]))
    return o3_nz_invalid(nz, "a convolution needs an input and weights");
  O3_TRY(o3_window_read(nz, node, operands[0], operands[1], &window));
  MlirValue all[3] = {o3_window_pad(nz, &window, operands[0], 0), operands[1]};
  if (count > 2) all[2] = operands[2];
  *result = build_conv(nz, &window, o3_node_int(node, "group", 1), count, all, acc);
  return NULL;
}

o3_status_t o3_onnx_conv(o3_nz_t *nz, o3_node_t *node) {
  int count = o3_node_has_input(node, 2) ? 3 : 2;
  const MlirValue operands[3] = {o3_node_input(node, 0), o3_node_input(node, 1), o3_node_input(node, 2)};
  return o3_nz_conv(nz, node, count, operands, (MlirType){0}, &node->outputs[0]);
}

/* ---- Transposed ---- */

typedef struct transposed {
  o3_window_t window;
  int64_t output_padding[O3_IR_MAX_RANK];
} transposed_t;

/* Half of what is too long is taken from each end; SAME_UPPER takes the odd one from the end, all else from
 * the begin. What is too short is added at the end, where only the bias lands. */
static o3_status_t split_total(o3_nz_t *nz, transposed_t *t, int i, MlirAffineExpr total, bool upper) {
  int64_t known;
  if (o3_expr_is_const(total, &known) && known < 0) {
    t->output_padding[i] -= known;
    total = o3_expr_const(nz->context, 0);
  }
  if (!o3_symbols_require_nonnegative(nz->symbols, total, nz->who))
    return o3_nz_invalid(nz, "the result's size in spatial dimension %d is too large", i);
  MlirAffineExpr half = o3_expr_floor_div(total, o3_expr_const(nz->context, 2));
  MlirAffineExpr rest = o3_expr_sub(total, half);
  t->window.lows[i] = upper ? half : rest;
  t->window.highs[i] = upper ? rest : half;
  return NULL;
}

/* stride * (in - 1) + extent + output_padding, the size without any padding taken off. */
static MlirAffineExpr full_size(o3_nz_t *nz, MlirValue x, const transposed_t *t, int i) {
  const o3_window_t *window = &t->window;
  int64_t rest =
      (window->kernel[i] - 1) * window->dilations[i] + 1 + t->output_padding[i] - window->strides[i];
  MlirAffineExpr start = o3_expr_mul(o3_nz_dim(nz, x, 2 + i), o3_expr_const(nz->context, window->strides[i]));
  return o3_expr_add(start, o3_expr_const(nz->context, rest));
}

/* output_shape and auto_pad SAME both fix the result's size; the pads follow from it. */
static o3_status_t pads_from_size(o3_nz_t *nz, const o3_node_t *node, MlirValue x, const char *mode,
                                  transposed_t *t) {
  int64_t sizes[O3_IR_MAX_RANK];
  int rank = t->window.rank, count = o3_node_ints(nz, node, "output_shape", sizes, O3_IR_MAX_RANK);
  if (o3_nz_failed(nz)) return NULL;
  if (count && count != rank && count != rank + 2)
    return o3_nz_invalid(nz, "output_shape has %d entries, %d expected", count, rank);
  for (int i = 0; i < rank; ++i) {
    MlirAffineExpr stride = o3_expr_const(nz->context, t->window.strides[i]);
    MlirAffineExpr wanted = count ? o3_expr_const(nz->context, sizes[count - rank + i])
                                  : o3_expr_mul(o3_nz_dim(nz, x, 2 + i), stride);
    MlirAffineExpr total = o3_expr_sub(full_size(nz, x, t, i), wanted);
    O3_TRY(split_total(nz, t, i, total, strcmp(mode, "SAME_UPPER") == 0));
  }
  return NULL;
}

static o3_status_t stated_pads(o3_nz_t *nz, const o3_node_t *node, transposed_t *t) {
  int64_t pads[2 * O3_IR_MAX_RANK] = {0};
  int rank = t->window.rank, count = o3_node_ints(nz, node, "pads", pads, 2 * O3_IR_MAX_RANK);
  if (count && count != 2 * rank)
    return o3_nz_invalid(nz, "pads has %d entries, %d expected", count, 2 * rank);
  for (int i = 0; i < rank; ++i) {
    if (pads[i] < 0 || pads[rank + i] < 0) return o3_nz_invalid(nz, "pads must not be negative");
    t->window.lows[i] = o3_expr_const(nz->context, pads[i]);
    t->window.highs[i] = o3_expr_const(nz->context, pads[rank + i]);
  }
  return NULL;
}

static o3_status_t read_transposed(o3_nz_t *nz, const o3_node_t *node, MlirValue x, MlirValue w,
                                   transposed_t *t) {
  memset(t, 0, sizeof(*t));
  O3_TRY(o3_window_read_sizes(nz, node, x, w, &t->window));
  int count = o3_node_ints(nz, node, "output_padding", t->output_padding, O3_IR_MAX_RANK);
  if (count && count != t->window.rank)
    return o3_nz_invalid(nz, "output_padding has %d entries, %d expected", count, t->window.rank);
  const char *mode = o3_node_string(nz, node, "auto_pad", "NOTSET");
  bool same = strncmp(mode, "SAME_", 5) == 0;
  if (!same && mode[0] && strcmp(mode, "NOTSET") != 0 && strcmp(mode, "VALID") != 0)
    return o3_nz_invalid(nz, "auto_pad is '%s'; NOTSET, SAME_UPPER, SAME_LOWER or VALID expected", mode);
  if (same || o3_node_has_attr(node, "output_shape")) return pads_from_size(nz, node, x, mode, t);
  return stated_pads(nz, node, t);
}

/* Pads take from the result: symbolic ones are cut off behind the op. */
static MlirValue crop(o3_nz_t *nz, const transposed_t *t, MlirValue y) {
  MlirAffineExpr lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK], zero = o3_expr_const(nz->context, 0);
  lows[0] = lows[1] = highs[0] = highs[1] = zero;
  for (int i = 0; i < t->window.rank; ++i) {
    lows[2 + i] = o3_expr_sub(zero, t->window.lows[i]);
    highs[2 + i] = o3_expr_sub(zero, t->window.highs[i]);
  }
  return o3_nz_pad(nz, y, lows, highs, o3_nz_like(nz, y, 0));
}

/* Whether all pads are constants, which the op takes itself. */
static bool settle(transposed_t *t) {
  o3_window_t *window = &t->window;
  bool constant = true;
  for (int i = 0; i < window->rank; ++i) {
    constant &= o3_expr_is_const(window->lows[i], &window->pads[i]);
    constant &= o3_expr_is_const(window->highs[i], &window->pads[window->rank + i]);
  }
  if (!constant) memset(window->pads, 0, sizeof(window->pads));
  return constant;
}

o3_status_t o3_onnx_conv_transpose(o3_nz_t *nz, o3_node_t *node) {
  transposed_t t;
  int count = o3_node_has_input(node, 2) ? 3 : 2;
  const MlirValue operands[3] = {o3_node_input(node, 0), o3_node_input(node, 1), o3_node_input(node, 2)};
  if (mlirValueIsNull(operands[0]) || mlirValueIsNull(operands[1]))
    return o3_nz_invalid(nz, "a convolution needs an input and weights");
  O3_TRY(read_transposed(nz, node, operands[0], operands[1], &t));
  if (o3_nz_failed(nz)) return NULL;
  bool constant = settle(&t);
  int rank = t.window.rank;
  MlirValue y = o3_nz_op(nz, "o3.conv_transpose", count, operands,
                         O3_ATTRS({"strides", o3_nz_ints_attr(nz, rank, t.window.strides)},
                                  {"dilations", o3_nz_ints_attr(nz, rank, t.window.dilations)},
                                  {"pads", o3_nz_ints_attr(nz, 2 * rank, t.window.pads)},
                                  {"output_padding", o3_nz_ints_attr(nz, rank, t.output_padding)},
                                  {"group", o3_attr_i64(nz->context, o3_node_int(node, "group", 1))}));
  node->outputs[0] = constant ? y : crop(nz, &t, y);
  return NULL;
}
