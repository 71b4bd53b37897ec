/* Signals: windows, Fourier transforms as products with tables of sines and cosines, mel filters. */
#include <math.h>

#include "normalize/nz_attention.h"
#include "normalize/onnx_matmul.h"
#include "normalize/onnx_window.h"

static MlirValue add(o3_nz_t *nz, MlirValue a, MlirValue b) { return o3_nz_binary(nz, "o3.add", a, b); }
static MlirValue sub(o3_nz_t *nz, MlirValue a, MlirValue b) { return o3_nz_binary(nz, "o3.sub", a, b); }
static MlirValue mul(o3_nz_t *nz, MlirValue a, MlirValue b) { return o3_nz_binary(nz, "o3.mul", a, b); }
static MlirValue quotient(o3_nz_t *nz, MlirValue a, MlirValue b) { return o3_nz_binary(nz, "o3.div", a, b); }
static MlirValue times(o3_nz_t *nz, MlirValue x, double factor) {
  return mul(nz, x, o3_nz_like(nz, x, factor));
}
static MlirValue plus(o3_nz_t *nz, MlirValue x, double y) { return add(nz, x, o3_nz_like(nz, x, y)); }

/* f64 for f64, else f32: what is computed in. */
static MlirType real_type(const o3_nz_t *nz, MlirType element) {
  return mlirTypeIsAF64(element) ? element : o3_nz_f32(nz);
}

static MlirValue size_scalar(o3_nz_t *nz, MlirAffineExpr size) { return o3_nz_sizes(nz, 1, &size, true); }

/* The scalar parameter |value| as a size. */
static MlirAffineExpr bind_size(o3_nz_t *nz, MlirValue value, const char *what) {
  MlirAffineExpr size = o3_expr_const(nz->context, 1);
  MlirValue scalar = o3_nz_reshape(nz, value, &(o3_shape_t){0});
  o3_nz_bind_sizes(nz, scalar, what, &size, 1);
  return size;
}

/* ---- Windows ---- */

/* a0 - a1 cos(t) + a2 cos(2t), t from 0 to 2 pi over the window. */
static o3_status_t window(o3_nz_t *nz, o3_node_t *node, double a0, double a1, double a2) {
  MlirType wanted = o3_nz_onnx_type(nz, o3_node_int(node, "output_datatype", 1));
  MlirAffineExpr size = bind_size(nz, o3_node_input(node, 0), "the size of the window");
  if (o3_nz_failed(nz)) return NULL;
  MlirType real = real_type(nz, wanted);
  MlirValue length = o3_nz_cast(nz, size_scalar(nz, size), real);
  if (!o3_node_int(node, "periodic", 1)) length = plus(nz, length, -1);
  MlirValue position = o3_nz_cast(nz, o3_nz_positions(nz, 1, 0, size), real);
  MlirValue t = quotient(nz, times(nz, position, 2 * M_PI), length);
  MlirValue y = plus(nz, times(nz, o3_nz_unary(nz, "o3.cos", t), -a1), a0);
  if (a2 != 0) y = add(nz, y, times(nz, o3_nz_unary(nz, "o3.cos", times(nz, t, 2)), a2));
  node->outputs[0] = o3_nz_cast(nz, y, wanted);
  return NULL;
}

o3_status_t o3_onnx_hann_window(o3_nz_t *nz, o3_node_t *node) { return window(nz, node, 0.5, 0.5, 0); }

o3_status_t o3_onnx_hamming_window(o3_nz_t *nz, o3_node_t *node) {
  return window(nz, node, 25.0 / 46, 21.0 / 46, 0);
}

o3_status_t o3_onnx_blackman_window(o3_nz_t *nz, o3_node_t *node) {
  return window(nz, node, 0.42, 0.5, 0.08);
}

/* ---- Fourier transforms ---- */

typedef struct dft {
  bool inverse, onesided;
  MlirAffineExpr length;  /* of the transform */
  MlirAffineExpr in, out; /* sizes of the tables */
  MlirType real;
} dft_t;

/* sin or cos of 2 pi j k / length, in x out. The product is taken modulo the length, so that angles stay
 * exact. */
static MlirValue table(o3_nz_t *nz, const dft_t *dft, const char *function) {
  MlirValue rows = o3_nz_positions(nz, 2, 0, dft->in), columns = o3_nz_positions(nz, 2, 1, dft->out);
  MlirValue length = size_scalar(nz, dft->length);
  MlirValue turn = o3_nz_cast(nz, o3_nz_binary(nz, "o3.mod", mul(nz, rows, columns), length), dft->real);
  MlirValue angle = quotient(nz, times(nz, turn, 2 * M_PI), o3_nz_cast(nz, length, dft->real));
  return o3_nz_unary(nz, function, angle);
}

/* Entry |index| of the last dimension, which is lost. */
static MlirValue part(o3_nz_t *nz, MlirValue x, int index) {
  int last = o3_nz_rank(nz, x) - 1;
  MlirAffineExpr start = o3_expr_const(nz->context, index), one = o3_expr_const(nz->context, 1);
  return o3_nz_squeeze(nz, o3_nz_slice(nz, x, last, start, one), 1, (int64_t[]){last});
}

/* The last dimension of |x| cut off or filled up with zeros. */
static MlirValue resized(o3_nz_t *nz, MlirValue x, MlirAffineExpr size) {
  MlirAffineExpr lows[O3_IR_MAX_RANK], highs[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x);
  if (o3_nz_failed(nz) || o3_expr_equal(o3_nz_dim(nz, x, rank - 1), size)) return x;
  for (int i = 0; i < rank; ++i) lows[i] = highs[i] = o3_expr_const(nz->context, 0);
  highs[rank - 1] = o3_expr_sub(size, o3_nz_dim(nz, x, rank - 1));
  return o3_nz_pad(nz, x, lows, highs, o3_nz_like(nz, x, 0));
}

static MlirValue product(o3_nz_t *nz, MlirValue a, MlirValue b) {
  return o3_nz_product(nz, a, b, (MlirType){0});
}

static MlirValue pair(o3_nz_t *nz, MlirValue real, MlirValue imaginary) {
  int64_t last = o3_nz_rank(nz, real);
  const MlirValue parts[2] = {o3_nz_unsqueeze(nz, real, 1, &last), o3_nz_unsqueeze(nz, imaginary, 1, &last)};
  return o3_nz_concat(nz, (int)last, 2, parts);
}

/* The real signal of a one-sided spectrum: each frequency but 0 and half the length stands for two. */
static MlirValue inverse_onesided(o3_nz_t *nz, const dft_t *dft, MlirValue re, MlirValue im) {
  MlirType real = dft->real;
  MlirValue k = o3_nz_positions(nz, 2, 0, dft->in), twice = times(nz, k, 2), zero = o3_nz_like(nz, k, 0);
  MlirValue first = o3_nz_binary(nz, "o3.equal", k, zero);
  MlirValue middle = o3_nz_binary(nz, "o3.equal", twice, size_scalar(nz, dft->length));
  MlirValue single = o3_nz_binary(nz, "o3.or", first, middle);
  MlirValue weight = o3_nz_select(nz, single, o3_nz_scalar(nz, real, 1), o3_nz_scalar(nz, real, 2));
  MlirValue cosines = mul(nz, table(nz, dft, "o3.cos"), weight),
            sines = mul(nz, table(nz, dft, "o3.sin"), weight);
  MlirValue sum = sub(nz, product(nz, re, cosines), product(nz, im, sines));
  int64_t last = o3_nz_rank(nz, sum);
  return o3_nz_unsqueeze(nz, sum, 1, &last);
}

static MlirValue transform(o3_nz_t *nz, const dft_t *dft, MlirValue re, MlirValue im) {
  MlirValue cosines = table(nz, dft, "o3.cos"), sines = table(nz, dft, "o3.sin");
  if (!dft->inverse) sines = o3_nz_unary(nz, "o3.neg", sines);
  MlirValue real = product(nz, re, cosines), imaginary = product(nz, re, sines);
  if (!mlirValueIsNull(im)) {
    real = sub(nz, real, product(nz, im, sines));
    imaginary = add(nz, imaginary, product(nz, im, cosines));
  }
  return pair(nz, real, imaginary);
}

/* The transform of x (... n, 1 or 2) along its last dimension but one. */
static MlirValue dft_of(o3_nz_t *nz, dft_t *dft, MlirValue x) {
  MlirAffineExpr two = o3_expr_const(nz->context, 2), one = o3_expr_const(nz->context, 1);
  MlirAffineExpr half = o3_expr_add(o3_expr_floor_div(dft->length, two), one);
  MlirType element = o3_nz_element(nz, x);
  int64_t parts = o3_nz_static_dim(nz, x, o3_nz_rank(nz, x) - 1, "whether the signal is real or complex");
  dft->real = mlirF64TypeGet(nz->context); /* sums that cancel would keep too few digits in f32 */
  dft->in = dft->inverse && dft->onesided ? half : dft->length;
  dft->out = !dft->inverse && dft->onesided ? half : dft->length;
  x = o3_nz_cast(nz, x, dft->real);
  MlirValue re = resized(nz, part(nz, x, 0), dft->in), im = {0}, y;
  if (parts == 2) im = resized(nz, part(nz, x, 1), dft->in);
  if (dft->inverse && dft->onesided) {
    y = inverse_onesided(nz, dft, re, parts == 2 ? im : times(nz, re, 0));
  } else {
    y = transform(nz, dft, re, im);
  }
  if (dft->inverse) y = quotient(nz, y, o3_nz_cast(nz, size_scalar(nz, dft->length), dft->real));
  return o3_nz_cast(nz, y, element);
}

/* |x| with dimension |axis| moved to the last but one, or back. */
static MlirValue move_axis(o3_nz_t *nz, MlirValue x, int axis, bool back) {
  int64_t perm[O3_IR_MAX_RANK];
  int rank = o3_nz_rank(nz, x), inner = rank - 2, from = back ? inner : axis, to = back ? axis : inner;
  for (int i = 0, next = 0; i < rank; ++i) {
    if (next == from) ++next;
    perm[i] = i == to ? from : next++;
  }
  return o3_nz_transpose(nz, x, perm);
}

static MlirValue dft_along(o3_nz_t *nz, const o3_node_t *node, MlirValue x, int axis) {
  dft_t dft = {.inverse = o3_node_int(node, "inverse", 0) != 0,
               .onesided = o3_node_int(node, "onesided", 0) != 0,
               .length = o3_nz_dim(nz, x, axis)};
  if (dft.inverse && dft.onesided) {
    MlirAffineExpr last = o3_expr_sub(dft.length, o3_expr_const(nz->context, 1));
    dft.length = o3_expr_mul(last, o3_expr_const(nz->context, 2));
  }
  if (o3_node_has_input(node, 1)) dft.length = bind_size(nz, o3_node_input(node, 1), "dft_length");
  return move_axis(nz, dft_of(nz, &dft, move_axis(nz, x, axis, false)), axis, true);
}

/* An axis that only the run knows: the transforms along all axes have one shape, and one of them is taken. */
static o3_status_t dft_at_run(o3_nz_t *nz, o3_node_t *node, MlirValue x, MlirValue axis) {
  int rank = o3_nz_rank(nz, x);
  MlirValue chosen = o3_nz_cast(nz, o3_nz_reshape(nz, axis, &(o3_shape_t){0}), o3_nz_i64(nz)),
            size = o3_nz_like(nz, chosen, rank), zero = o3_nz_like(nz, chosen, 0);
  if (o3_node_int(node, "onesided", 0) || o3_node_has_input(node, 1))
    return o3_nz_unsupported(nz, "the axis must be a constant where the shape of the result depends on it");
  MlirValue negative = o3_nz_binary(nz, "o3.less", chosen, zero), y = {0};
  chosen = o3_nz_select(nz, negative, add(nz, chosen, size), chosen);
  MlirAffineExpr number = o3_expr_const(nz->context, 0), last = o3_expr_const(nz->context, rank - 2);
  o3_nz_bind_sizes(nz, chosen, "the axis", &number, 1);
  if (!o3_symbols_require_nonnegative(nz->symbols, o3_expr_sub(last, number), nz->who))
    return o3_nz_invalid(nz, "the axis is out of range");
  for (int i = 0; i < rank - 1; ++i) {
    MlirValue here = dft_along(nz, node, x, i);
    MlirValue taken = o3_nz_binary(nz, "o3.equal", chosen, o3_nz_like(nz, chosen, i));
    y = i ? o3_nz_select(nz, taken, here, y) : here;
  }
  node->outputs[0] = y;
  return NULL;
}

/* The axis was an attribute before opset 20. */
o3_status_t o3_onnx_dft(o3_nz_t *nz, o3_node_t *node) {
  MlirAffineExpr known;
  MlirValue x = o3_node_input(node, 0), input = node->opset < 20 ? (MlirValue){0} : o3_node_input(node, 2);
  int64_t axis = node->opset < 20 ? o3_node_int(node, "axis", 1) : -2;
  int rank = o3_nz_rank(nz, x);
  if (!mlirValueIsNull(input) && (o3_nz_exprs(nz, input, &known, 1) != 1 || !o3_expr_is_const(known, &axis)))
    return dft_at_run(nz, node, x, input);
  int dim = o3_nz_axis(nz, axis, rank);
  if (o3_nz_failed(nz)) return NULL;
  if (dim == rank - 1) return o3_nz_invalid(nz, "the axis is that of the real and imaginary parts");
  node->outputs[0] = dft_along(nz, node, x, dim);
  return NULL;
}

/* ---- Short-time transforms ---- */

/* The frames of x (batch, length, parts): batch, frame, position, parts. */
static MlirValue frames_of(o3_nz_t *nz, MlirValue x, MlirValue step, MlirAffineExpr length) {
  MlirAffineExpr count = o3_expr_const(nz->context, 1), room = o3_expr_sub(o3_nz_dim(nz, x, 1), length);
  if (!o3_symbols_require_nonnegative(nz->symbols, room, nz->who))
    o3_nz_fail(nz, o3_nz_invalid(nz, "the signal is shorter than a frame"));
  MlirValue number = plus(nz, quotient(nz, size_scalar(nz, room), step), 1);
  o3_nz_bind_sizes(nz, number, "the number of frames", &count, 1);
  MlirValue starts = mul(nz, o3_nz_positions(nz, 2, 0, count), step);
  MlirValue indices = add(nz, starts, o3_nz_positions(nz, 2, 1, length));
  return o3_nz_op(nz, "o3.gather", O3_VALUES(x, indices), O3_ATTRS({"axis", o3_attr_i64(nz->context, 1)}));
}

/* Inputs: signal, frame_step, window, frame_length. */
o3_status_t o3_onnx_stft(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0), shape_of = o3_node_input(node, 2);
  MlirValue step = o3_nz_cast(nz, o3_nz_reshape(nz, o3_node_input(node, 1), &(o3_shape_t){0}), o3_nz_i64(nz));
  if (o3_nz_rank(nz, x) == 2) x = o3_nz_unsqueeze(nz, x, 1, (int64_t[]){2});
  if (o3_nz_rank(nz, x) != 3) return o3_nz_invalid(nz, "signal of rank %d, 3 expected", o3_nz_rank(nz, x));
  dft_t dft = {.onesided = o3_node_int(node, "onesided", 1) != 0, .length = o3_nz_dim(nz, x, 1)};
  if (o3_node_has_input(node, 2)) dft.length = o3_nz_dim(nz, shape_of, 0);
  if (o3_node_has_input(node, 3)) dft.length = bind_size(nz, o3_node_input(node, 3), "frame_length");
  MlirValue frames = frames_of(nz, x, step, dft.length);
  if (o3_node_has_input(node, 2)) {
    o3_shape_t shape = {.rank = 2, .dims = {dft.length, o3_expr_const(nz->context, 1)}};
    frames = mul(nz, frames, o3_nz_reshape(nz, o3_node_input(node, 2), &shape));
  }
  node->outputs[0] = dft_of(nz, &dft, frames);
  return NULL;
}

/* ---- Mel filters ---- */

typedef struct mel {
  MlirAffineExpr bins;        /* of the mel scale */
  MlirValue dft_length, rate; /* f64 */
  MlirValue low, step;        /* in mels, f64 */
} mel_t;

/* 2595 log10(1 + hertz / 700) */
static MlirValue to_mel(o3_nz_t *nz, MlirValue hertz) {
  MlirValue ratio = plus(nz, times(nz, hertz, 1.0 / 700), 1);
  return times(nz, o3_nz_unary(nz, "o3.log", ratio), 2595 / M_LN10);
}

/* Bin of the spectrum at edge i + |offset| of the filters: 1 x bins, i64. */
static MlirValue edge(o3_nz_t *nz, const mel_t *mel, int offset) {
  MlirType f64 = mlirF64TypeGet(nz->context);
  MlirValue i = plus(nz, o3_nz_cast(nz, o3_nz_positions(nz, 2, 1, mel->bins), f64), offset);
  MlirValue mels = add(nz, mul(nz, i, mel->step), mel->low);
  MlirValue power = o3_nz_unary(nz, "o3.exp", times(nz, mels, M_LN10 / 2595));
  MlirValue hertz = times(nz, plus(nz, power, -1), 700);
  MlirValue bin = quotient(nz, mul(nz, plus(nz, mel->dft_length, 1), hertz), mel->rate);
  return o3_nz_cast(nz, o3_nz_unary(nz, "o3.floor", bin), o3_nz_i64(nz));
}

/* a <= x < b */
static MlirValue between(o3_nz_t *nz, MlirValue a, MlirValue x, MlirValue b) {
  MlirValue from = o3_nz_binary(nz, "o3.less_equal", a, x), to = o3_nz_binary(nz, "o3.less", x, b);
  return o3_nz_binary(nz, "o3.and", from, to);
}

/* Triangles that rise from the left edge to 1 at the center and fall to the right edge. */
static MlirValue triangles(o3_nz_t *nz, const mel_t *mel, MlirAffineExpr spectrum) {
  MlirType f64 = mlirF64TypeGet(nz->context);
  MlirValue left = edge(nz, mel, 0), center = edge(nz, mel, 1), right = edge(nz, mel, 2);
  MlirValue j = o3_nz_positions(nz, 2, 0, spectrum), one = o3_nz_like(nz, j, 1),
            zero = o3_nz_scalar(nz, f64, 0);
  MlirValue rise = o3_nz_binary(nz, "o3.max", sub(nz, center, left), one);
  MlirValue fall = o3_nz_binary(nz, "o3.max", sub(nz, right, center), one);
  MlirValue up = quotient(nz, o3_nz_cast(nz, sub(nz, j, left), f64), o3_nz_cast(nz, rise, f64));
  MlirValue down = quotient(nz, o3_nz_cast(nz, sub(nz, right, j), f64), o3_nz_cast(nz, fall, f64));
  MlirValue at_center = o3_nz_binary(nz, "o3.equal", j, center);
  MlirValue y = o3_nz_select(nz, between(nz, center, j, right), down, zero);
  y = o3_nz_select(nz, between(nz, left, j, center), up, y);
  return o3_nz_select(nz, at_center, o3_nz_scalar(nz, f64, 1), y);
}

/* Inputs: num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz. */
o3_status_t o3_onnx_mel_weight_matrix(o3_nz_t *nz, o3_node_t *node) {
  MlirType f64 = mlirF64TypeGet(nz->context);
  MlirType wanted = o3_nz_onnx_type(nz, o3_node_int(node, "output_datatype", 1));
  MlirValue scalars[5];
  for (int i = 0; i < 5; ++i) scalars[i] = o3_nz_reshape(nz, o3_node_input(node, i), &(o3_shape_t){0});
  mel_t mel = {.bins = bind_size(nz, scalars[0], "num_mel_bins"),
               .dft_length = o3_nz_cast(nz, scalars[1], f64),
               .rate = o3_nz_cast(nz, scalars[2], f64),
               .low = to_mel(nz, o3_nz_cast(nz, scalars[3], f64))};
  MlirAffineExpr length = bind_size(nz, scalars[1], "dft_length"), two = o3_expr_const(nz->context, 2);
  if (o3_nz_failed(nz)) return NULL;
  MlirValue high = to_mel(nz, o3_nz_cast(nz, scalars[4], f64));
  MlirValue edges = plus(nz, o3_nz_cast(nz, scalars[0], f64), 2);
  mel.step = quotient(nz, sub(nz, high, mel.low), edges);
  MlirAffineExpr spectrum = o3_expr_add(o3_expr_floor_div(length, two), o3_expr_const(nz->context, 1));
  node->outputs[0] = o3_nz_cast(nz, triangles(nz, &mel, spectrum), wanted);
  return NULL;
}
