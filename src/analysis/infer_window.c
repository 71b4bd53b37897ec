/* Ops that slide a window over the spatial dimensions (those behind N and C). */
#include <stdlib.h>

#include "analysis/infer.h"

typedef struct window {
  int rank; /* spatial */
  int64_t strides[O3_IR_MAX_RANK], dilations[O3_IR_MAX_RANK], pads[2 * O3_IR_MAX_RANK];
} window_t;

static o3_status_t read_window(const o3_infer_t *in, window_t *window) {
  const o3_shape_t *x = &in->operands[0]->shape;
  if (x->rank < 3)
    return o3_infer_error(in, "input of rank %d, at least 3 expected (batch, channels, spatial dimensions)",
                          x->rank);
  window->rank = x->rank - 2;
  int strides = o3_infer_ints(in, "strides", window->strides, O3_IR_MAX_RANK);
  int dilations = o3_infer_ints(in, "dilations", window->dilations, O3_IR_MAX_RANK);
  int pads = o3_infer_ints(in, "pads", window->pads, 2 * O3_IR_MAX_RANK);
  if (strides != window->rank || dilations != window->rank || pads != 2 * window->rank)
    return o3_infer_error(in, "%d strides, %d dilations and %d pads for %d spatial dimensions", strides,
                          dilations, pads, window->rank);
  for (int i = 0; i < window->rank; ++i) {
    if (window->strides[i] < 1 || window->dilations[i] < 1)
      return o3_infer_error(in,
                            "stride %lld and dilation %lld of spatial dimension %d, both must be positive",
                            (long long)window->strides[i], (long long)window->dilations[i], i);
  }
  return NULL;
}

/* (kernel - 1) * dilation + 1 */
static MlirAffineExpr extent(MlirAffineExpr kernel, int64_t dilation) {
  MlirContext context = mlirAffineExprGetContext(kernel);
  MlirAffineExpr one = o3_expr_const(context, 1);
  return o3_expr_add(o3_expr_mul(o3_expr_sub(kernel, one), o3_expr_const(context, dilation)), one);
}

/* The number of windows along spatial dimension |i|. With |ceil| a last one may hang over the end, but must
 * not start beyond the input and its leading padding. */
static o3_status_t count_windows(const o3_infer_t *in, const window_t *window, int i, MlirAffineExpr kernel,
                                 bool ceil, MlirAffineExpr *count) {
  MlirAffineExpr size = in->operands[0]->shape.dims[2 + i], one = o3_expr_const(in->context, 1);
  MlirAffineExpr stride = o3_expr_const(in->context, window->strides[i]);
  MlirAffineExpr led = o3_expr_add(size, o3_expr_const(in->context, window->pads[i]));
  MlirAffineExpr padded = o3_expr_add(led, o3_expr_const(in->context, window->pads[window->rank + i]));
  MlirAffineExpr room = o3_expr_sub(padded, extent(kernel, window->dilations[i]));
  MlirAffineExpr needed = ceil ? o3_expr_add(room, o3_expr_const(in->context, window->strides[i] - 1)) : room;
  if (!o3_symbols_require_nonnegative(in->symbols, needed, in->who)) {
    char *text = o3_expr_text(in->symbols, padded), *wanted = o3_expr_text(in->symbols, kernel);
    o3_status_t status = o3_infer_error(
        in, "spatial dimension %d has padded size %s, too small for a window of %s", i, text, wanted);
    free(text);
    free(wanted);
    return status;
  }
  MlirAffineExpr hanging = o3_expr_sub(o3_expr_add(room, stride), led);
  bool starts_behind = ceil && o3_expr_at_least(hanging, 1);
  *count = o3_expr_add(ceil ? o3_expr_ceil_div(room, stride) : o3_expr_floor_div(room, stride), one);
  if (starts_behind) *count = o3_expr_ceil_div(led, stride);
  return NULL;
}

/* ---- Pooling ---- */

static o3_status_t infer_pool(o3_infer_t *in, o3_shape_t *shape) {
  window_t window;
  int64_t kernel[O3_IR_MAX_RANK];
  O3_TRY(read_window(in, &window));
  int count = o3_infer_ints(in, "kernel", kernel, O3_IR_MAX_RANK);
  if (count != window.rank)
    return o3_infer_error(in, "a window of %d sizes for %d spatial dimensions", count, window.rank);
  *shape = in->operands[0]->shape;
  for (int i = 0; i < window.rank; ++i) {
    if (kernel[i] < 1) return o3_infer_error(in, "the window has size %lld", (long long)kernel[i]);
    O3_TRY(count_windows(in, &window, i, o3_expr_const(in->context, kernel[i]),
                         o3_infer_bool(in, "ceil_mode", false), &shape->dims[2 + i]));
  }
  return NULL;
}

o3_status_t o3_infer_pool(o3_infer_t *in) {
  in->num_results = 1;
  in->results[0].element = in->operands[0]->element;
  return infer_pool(in, &in->results[0].shape);
}

o3_status_t o3_infer_pool_indices(o3_infer_t *in) {
  in->num_results = 2;
  in->results[0].element = in->operands[0]->element;
  in->results[1].element = mlirIntegerTypeGet(in->context, 64);
  O3_TRY(infer_pool(in, &in->results[0].shape));
  in->results[1].shape = in->results[0].shape;
  return NULL;
}

/* ---- Convolution ---- */

static o3_status_t check_equal(const o3_infer_t *in, MlirAffineExpr a, MlirAffineExpr b, const char *what) {
  if (o3_symbols_require_equal(in->symbols, a, b, in->who)) return NULL;
  char *a_text = o3_expr_text(in->symbols, a), *b_text = o3_expr_text(in->symbols, b);
  o3_status_t status = o3_infer_error(in, "%s: %s, %s expected", what, a_text, b_text);
  free(a_text);
  free(b_text);
  return status;
}

/* x: N C spatial...; w: rank of x; b: |channels|. */
static o3_status_t check_conv(const o3_infer_t *in, MlirAffineExpr channels) {
  const o3_shape_t *x = &in->operands[0]->shape, *w = &in->operands[1]->shape;
  int64_t group = o3_infer_int(in, "group", 1), size;
  if (w->rank != x->rank)
    return o3_infer_error(in, "weights of rank %d for an input of rank %d", w->rank, x->rank);
  if (group < 1) return o3_infer_error(in, "group is %lld, at least 1 expected", (long long)group);
  for (int i = 0; i < 2; ++i) {
    MlirAffineExpr divided = i ? x->dims[1] : channels;
    if (o3_expr_is_const(divided, &size) && size % group != 0)
      return o3_infer_error(in, "%lld channels do not make %lld groups", (long long)size, (long long)group);
  }
  if (in->num_operands < 3) return NULL;
  if (in->operands[2]->shape.rank != 1)
    return o3_infer_error(in, "bias of rank %d, 1 expected", in->operands[2]->shape.rank);
  return check_equal(in, in->operands[2]->shape.dims[0], channels, "length of the bias");
}

static MlirType conv_element(const o3_infer_t *in) {
  MlirAttribute acc = o3_infer_attr(in, "acc");
  return mlirAttributeIsNull(acc) ? in->operands[0]->element : mlirTypeAttrGetValue(acc);
}

o3_status_t o3_infer_conv(o3_infer_t *in) {
  window_t window;
  const o3_shape_t *x = &in->operands[0]->shape, *w = &in->operands[1]->shape;
  MlirAffineExpr group = o3_expr_const(in->context, o3_infer_int(in, "group", 1));
  O3_TRY(read_window(in, &window));
  O3_TRY(check_conv(in, w->dims[0]));
  O3_TRY(check_equal(in, x->dims[1], o3_expr_mul(w->dims[1], group), "channels of the input"));
  in->num_results = 1;
  o3_shape_t *y = &in->results[0].shape;
  *y = *x;
  y->dims[1] = w->dims[0];
  in->results[0].element = conv_element(in);
  for (int i = 0; i < window.rank; ++i)
    O3_TRY(count_windows(in, &window, i, w->dims[2 + i], false, &y->dims[2 + i]));
  return NULL;
}

/* stride * (in - 1) + extent + output_padding - pads */
o3_status_t o3_infer_conv_transpose(o3_infer_t *in) {
  window_t window;
  int64_t output_padding[O3_IR_MAX_RANK];
  const o3_shape_t *x = &in->operands[0]->shape, *w = &in->operands[1]->shape;
  O3_TRY(read_window(in, &window));
  if (w->rank != x->rank)
    return o3_infer_error(in, "weights of rank %d for an input of rank %d", w->rank, x->rank);
  MlirAffineExpr channels = o3_expr_mul(w->dims[1], o3_expr_const(in->context, o3_infer_int(in, "group", 1)));
  O3_TRY(check_conv(in, channels));
  O3_TRY(check_equal(in, x->dims[1], w->dims[0], "channels of the input"));
  if (o3_infer_ints(in, "output_padding", output_padding, O3_IR_MAX_RANK) != window.rank)
    return o3_infer_error(in, "output_padding must have %d entries", window.rank);
  in->num_results = 1;
  o3_shape_t *y = &in->results[0].shape;
  *y = *x;
  y->dims[1] = channels;
  in->results[0].element = conv_element(in);
  for (int i = 0; i < window.rank; ++i) {
    int64_t rest = output_padding[i] - window.pads[i] - window.pads[window.rank + i];
    MlirAffineExpr last = o3_expr_sub(x->dims[2 + i], o3_expr_const(in->context, 1));
    MlirAffineExpr start = o3_expr_mul(last, o3_expr_const(in->context, window.strides[i]));
    MlirAffineExpr end = o3_expr_add(start, extent(w->dims[2 + i], window.dilations[i]));
    y->dims[2 + i] = o3_expr_add(end, o3_expr_const(in->context, rest));
    if (!o3_symbols_require_nonnegative(in->symbols, y->dims[2 + i], in->who))
      return o3_infer_error(in, "the result would have a negative size in spatial dimension %d", i);
  }
  return NULL;
}
