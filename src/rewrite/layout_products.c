/* Layouts of convolutions and matrix products: where blocked values and panels come from. */
#include <string.h>

#include "rewrite/layout.h"
#include "rewrite/layout_sparse.h"

enum { LANES = O3_BLOCK_LANES };

typedef struct conv {
  MlirOperation op;
  MlirValue x, w, b; /* as plain 2-D */
  o3_shape_t x_shape, w_shape, y_shape;
  int64_t strides[2], dilations[2], pads[4], group;
  int64_t channels, group_channels, outputs;
  int64_t phase_outputs; /* of one phase, when shuffled; else all outputs */
  bool shuffled;         /* phases below are between the positions of the result */
  int64_t phases[2];
} conv_t;

/* ---- Reading ---- */

/* One spatial dimension is the last of two. */
static void widen(o3_shape_t *shape, MlirContext context) {
  shape->dims[3] = shape->dims[2];
  shape->dims[2] = o3_expr_const(context, 1);
  shape->rank = 4;
}

static void read_window(conv_t *conv, int rank) {
  int64_t values[4];
  for (int i = 0; i < 2; ++i)
    conv->strides[i] = conv->dilations[i] = 1, conv->pads[i] = conv->pads[2 + i] = 0;
  o3_op_ints(conv->op, "strides", conv->strides + 2 - rank, 2);
  o3_op_ints(conv->op, "dilations", conv->dilations + 2 - rank, 2);
  o3_op_ints(conv->op, "pads", values, 4);
  for (int i = 0; i < rank; ++i) {
    conv->pads[2 - rank + i] = values[i];
    conv->pads[4 - rank + i] = values[rank + i];
  }
}

static bool read_shapes(const o3_layout_t *self, conv_t *conv) {
  conv->x = mlirOperationGetOperand(conv->op, 0);
  conv->w = mlirOperationGetOperand(conv->op, 1);
  if (mlirOperationGetNumOperands(conv->op) > 2) conv->b = mlirOperationGetOperand(conv->op, 2);
  MlirValue y = mlirOperationGetResult(conv->op, 0);
  if (!o3_layout_has_products(self, conv->x) || !o3_layout_has_products(self, conv->w) ||
      !o3_layout_has_products(self, y))
    return false;
  bool known = o3_layout_shape(conv->x, &conv->x_shape) && o3_layout_shape(conv->w, &conv->w_shape) &&
               o3_layout_shape(y, &conv->y_shape);
  if (!known || !o3_shape_is_static(&conv->w_shape) || !o3_layout_is_constant(conv->w)) return false;
  if (!mlirValueIsNull(conv->b) && !o3_layout_is_constant(conv->b)) return false;
  return conv->x_shape.rank == 3 || conv->x_shape.rank == 4;
}

static bool read_conv(const o3_layout_t *self, MlirOperation op, conv_t *conv) {
  *conv = (conv_t){.op = op, .group = o3_op_int(op, "group", 1)};
  if (!read_shapes(self, conv)) return false;
  read_window(conv, conv->x_shape.rank - 2);
  conv->channels = o3_layout_size(&conv->x_shape, 1);
  conv->outputs = conv->phase_outputs = o3_layout_size(&conv->w_shape, 0);
  conv->group_channels = o3_layout_size(&conv->w_shape, 1);
  for (int i = 0; i < conv->w_shape.rank; ++i) {
    if (o3_layout_size(&conv->w_shape, i) <= 0) return false;
  }
  for (int i = 0; i < 4; ++i) {
    if (conv->pads[i] < 0) return false;
  }
  return conv->channels > 0;
}

static bool is_depthwise(const conv_t *conv) {
  return conv->group > 1 && conv->group == conv->channels && conv->outputs == conv->channels;
}

/* Weights of groups with the zeros between them: of 32 groups of 32 channels, 3x3, they are 9 million. */
enum { MAX_GROUP_WEIGHTS = 16 << 20 };
static bool may_join_groups(const conv_t *conv) {
  int64_t taps = 1;
  for (int i = 2; i < conv->w_shape.rank; ++i) taps *= o3_layout_size(&conv->w_shape, i);
  return conv->outputs % conv->group == 0 && conv->channels <= MAX_GROUP_WEIGHTS / conv->outputs / taps;
}

/* All sizes of the image but the number of images. */
static bool has_known_sizes(const conv_t *conv) {
  for (int i = 1; i < conv->x_shape.rank; ++i) {
    if (o3_layout_size(&conv->x_shape, i) < 0) return false;
  }
  return true;
}

/* Groups of whole blocks stay apart. With channels last they become one, and sizes must be known. */
static bool is_blocked(const o3_layout_t *self, const conv_t *conv) {
  if (self->last && !has_known_sizes(conv)) return false;
  if (conv->group == 1 || is_depthwise(conv)) return true;
  if (self->last) return may_join_groups(conv);
  return conv->group_channels % LANES == 0 && conv->outputs / conv->group % LANES == 0;
}

/* ---- Operands ---- */

/* M C KH KW to M/16 C/c KH KW c 16, blocks of inputs of |lanes|; depthwise M 1 KH KW to M/16 KH KW 16. */
static MlirValue pack_weights(o3_layout_t *self, const conv_t *conv, int64_t lanes) {
  int64_t outputs = conv->outputs, channels = conv->group_channels;
  MlirValue w = o3_layout_pad(self, conv->w, 0, o3_layout_round_up(outputs, LANES) - outputs, 0);
  if (lanes) w = o3_layout_pad(self, w, 1, o3_layout_round_up(channels, lanes) - channels, 0);
  w = o3_layout_split(self, w, 0, LANES);
  if (lanes) {
    w = o3_layout_split(self, w, 2, lanes);
    return o3_layout_transpose(self, w, (int64_t[]){0, 2, 4, 5, 3, 1});
  }
  o3_shape_t shape;
  w = o3_layout_transpose(self, w, (int64_t[]){0, 2, 3, 4, 1});
  if (!o3_layout_shape(w, &shape)) return w;
  for (int i = 1; i < 4; ++i) shape.dims[i] = shape.dims[i + 1];
  shape.rank = 4;
  return o3_layout_reshape(self, w, &shape);
}

static MlirValue pack_bias(o3_layout_t *self, const conv_t *conv) {
  int64_t size = o3_type_count(mlirValueGetType(conv->b)), extra = o3_layout_round_up(size, LANES) - size;
  return o3_layout_split(self, o3_layout_pad(self, conv->b, 0, extra, 0), 0, LANES);
}

/* Of inputs, 0 when they are blocks of one, and results in blocks that are not full; of a phase. */
static MlirAttribute channels_attr(o3_layout_t *self, int64_t inputs, int64_t outputs) {
  if (inputs % LANES == 0 && outputs % LANES == 0) return mlirAttributeGetNull();
  return o3_attr_ints(self->context, 2, (int64_t[]){inputs, outputs});
}

static MlirValue build_conv(o3_layout_t *self, const conv_t *conv, const o3_shape_t *y_shape) {
  bool depthwise = is_depthwise(conv);
  MlirValue operands[3] = {o3_layout_pack(self, conv->x, !depthwise)};
  o3_shape_t x_shape, shape;
  MlirType element = o3_type_element(mlirValueGetType(conv->x));
  if (!o3_layout_shape(operands[0], &x_shape)) return (MlirValue){0};
  operands[1] = pack_weights(self, conv, depthwise ? 0 : o3_layout_size(&x_shape, 4));
  if (!mlirValueIsNull(conv->b)) operands[2] = pack_bias(self, conv);
  int64_t inputs = o3_layout_size(&x_shape, 4) == LANES ? conv->group_channels : 0;
  o3_layout_blocked_shape(self, y_shape, &shape);
  const o3_attr_t attrs[] = {
      {"strides", o3_attr_ints(self->context, 2, conv->strides)},
      {"dilations", o3_attr_ints(self->context, 2, conv->dilations)},
      {"pads", o3_attr_ints(self->context, 4, conv->pads)},
      {"group", depthwise ? mlirAttributeGetNull() : o3_attr_i64(self->context, conv->group)},
      {"shuffle", conv->shuffled ? o3_attr_ints(self->context, 2, conv->phases) : mlirAttributeGetNull()},
      {"channels", depthwise ? mlirAttributeGetNull() : channels_attr(self, inputs, conv->phase_outputs)}};
  return o3_layout_op(self, depthwise ? "o3.depthwise_blocked" : "o3.conv_blocked", &shape, element,
                      mlirValueIsNull(conv->b) ? 2 : 3, operands, 6, attrs);
}

static o3_sparse_weight_t sparse_form(const conv_t *conv) {
  int64_t height = o3_layout_size(&conv->w_shape, 2), width = o3_layout_size(&conv->w_shape, 3);
  return (o3_sparse_weight_t){.is_f32 = true,
                              .outputs = conv->outputs,
                              .channels = conv->group_channels,
                              .group = conv->group,
                              .window = {height, width},
                              .steps = {conv->strides[0], conv->strides[1]},
                              .dilations = {conv->dilations[0], conv->dilations[1]},
                              .strides = {conv->group_channels * height * width, height * width, width, 1}};
}

static MlirValue sparse_op(o3_layout_t *self, const conv_t *conv, const o3_layout_sparse_t *sparse,
                           MlirValue x, MlirValue b, const o3_shape_t *shape) {
  const MlirValue operands[5] = {x, sparse->values, sparse->rows, sparse->columns, b};
  return o3_layout_op(
      self, "o3.conv_sparse", shape, o3_type_element(mlirValueGetType(x)), mlirValueIsNull(b) ? 4 : 5,
      operands,
      O3_ATTRS({"strides", o3_attr_ints(self->context, 2, conv->strides)},
               {"dilations", o3_attr_ints(self->context, 2, conv->dilations)},
               {"pads", o3_attr_ints(self->context, 4, conv->pads)}, {"encoding", sparse->encoding}));
}

/* The value that |x| is the first channels of: weights name the channels that they read, so more do no harm,
 * and the kernel reads a whole value. */
static MlirValue with_all_channels(MlirValue x) {
  MlirOperation def = o3_value_def(x);
  int64_t axis, step;
  o3_shape_t starts;
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.slice")) return x;
  if (o3_op_ints(def, "axes", &axis, 1) != 1 || o3_op_ints(def, "steps", &step, 1) != 1) return x;
  o3_shape_from_attr(o3_op_attr(def, "starts"), &starts);
  bool first = starts.rank == 1 && axis == 1 && step == 1 && o3_expr_equals_const(starts.dims[0], 0);
  return first ? mlirOperationGetOperand(def, 0) : x;
}

/* Compressed rows: steps of larger windows become channels, and dilations are in the columns already. */
static MlirValue build_plain_sparse(o3_layout_t *self, conv_t conv, const o3_layout_sparse_t *sparse,
                                    const o3_shape_t *y_shape) {
  bool is_point = o3_layout_size(&conv.w_shape, 2) * o3_layout_size(&conv.w_shape, 3) == 1;
  conv.dilations[0] = conv.dilations[1] = 1;
  if (!is_point && conv.strides[0] * conv.strides[1] > 1) {
    o3_layout_steps_t steps;
    memcpy(steps.strides, conv.strides, sizeof(steps.strides));
    memcpy(steps.pads, conv.pads, sizeof(steps.pads));
    conv.x = o3_layout_without_steps(self, conv.x, &steps);
    memset(conv.pads, 0, sizeof(conv.pads));
    conv.strides[0] = conv.strides[1] = 1;
  }
  return sparse_op(self, &conv, sparse, with_all_channels(conv.x), conv.b, y_shape);
}

/* The plain result. */
static MlirValue build_sparse(o3_layout_t *self, const conv_t *conv, const o3_shape_t *y_shape) {
  o3_sparse_weight_t weight = sparse_form(conv);
  o3_layout_sparse_t sparse;
  o3_shape_t shape;
  if (!o3_layout_store_sparse(self, conv->op, &weight, &sparse)) return (MlirValue){0};
  if (sparse.is_plain) return build_plain_sparse(self, *conv, &sparse, y_shape);
  MlirValue b = mlirValueIsNull(conv->b) ? conv->b : pack_bias(self, conv);
  o3_layout_blocked_shape(self, y_shape, &shape);
  MlirValue y = sparse_op(self, conv, &sparse, o3_layout_pack(self, conv->x, false), b, &shape);
  return o3_layout_unpack(self, y, y_shape);
}

/* ---- Winograd ---- */

static bool fits_winograd(const conv_t *conv) {
  bool fits = conv->group == 1 && conv->channels >= LANES && !o3_op_bool(conv->op, "o3.exact", false);
  for (int i = 0; i < 2; ++i)
    fits = fits && o3_layout_size(&conv->w_shape, 2 + i) == O3_WINOGRAD_TAPS && conv->strides[i] == 1 &&
           conv->dilations[i] == 1;
  return fits;
}

static int winograd_tile(o3_layout_t *self, const conv_t *conv, const o3_shape_t *y_shape) {
  if (!fits_winograd(conv)) return 0;
  const o3_winograd_layer_t layer = {.images = o3_layout_size(y_shape, 0),
                                     .height = o3_layout_size(y_shape, 2),
                                     .width = o3_layout_size(y_shape, 3),
                                     .channels = conv->channels,
                                     .outputs = conv->outputs,
                                     .model_bytes = o3_winograd_model_bytes(conv->op)};
  return o3_layout_winograd_tile(self, conv->op, &layer);
}

static MlirValue build_winograd(o3_layout_t *self, const conv_t *conv, const o3_shape_t *y_shape, int tile) {
  o3_shape_t shape;
  MlirValue operands[3] = {o3_layout_pack(self, conv->x, false),
                           o3_layout_winograd_weights(self, conv->w, tile)};
  if (!mlirValueIsNull(conv->b)) operands[2] = pack_bias(self, conv);
  o3_layout_blocked_shape(self, y_shape, &shape);
  const o3_attr_t attrs[] = {{"pads", o3_attr_ints(self->context, 4, conv->pads)},
                             {"tile", o3_attr_i64(self->context, tile)},
                             {"channels", channels_attr(self, conv->channels, conv->outputs)}};
  return o3_layout_op(self, "o3.winograd_blocked", &shape, mlirF32TypeGet(self->context),
                      mlirValueIsNull(conv->b) ? 2 : 3, operands, 3, attrs);
}

/* ---- Channels last ---- */

/* What a convolution reads: |channels| of |x|, of which the first |start| and those behind its own meet
 * zeros. */
typedef struct last_input {
  MlirValue x;
  int64_t start, channels;
} last_input_t;

/* |w| is computed by the compiler, though it is much larger than what it is made from. */
static MlirValue folded(o3_layout_t *self, MlirValue w) {
  o3_op_attr_set(o3_value_def(w), "o3.fold", mlirUnitAttrGet(self->context));
  return w;
}

/* Tensor cores take tf32 with k contiguous. */
static bool has_columns(const o3_layout_t *self, const conv_t *conv) {
  return self->tf32_last && o3_layout_is_f32(conv->x) && !is_depthwise(conv);
}

/* M C KH KW to KH KW C M, or by columns to KH M KW C; depthwise M 1 KH KW to KH KW M. */
static MlirValue last_weights(o3_layout_t *self, const conv_t *conv, int64_t outputs,
                              const last_input_t *in) {
  MlirValue w = o3_layout_pad(self, conv->w, 0, outputs - conv->outputs, 0);
  bool depthwise = is_depthwise(conv);
  if (!depthwise && in->channels > conv->channels)
    w = folded(self, o3_layout_pad_ends(self, w, 1, in->start, in->channels - in->start - conv->channels, 0));
  if (has_columns(self, conv)) return o3_layout_transpose(self, w, (int64_t[]){2, 0, 3, 1});
  w = o3_layout_transpose(self, w, (int64_t[]){2, 3, 1, 0});
  o3_shape_t shape;
  if (!depthwise || !o3_layout_shape(w, &shape)) return w;
  shape.dims[2] = shape.dims[3];
  shape.rank = 3;
  return o3_layout_reshape(self, w, &shape);
}

/* The weights of groups as those of one, M C/g KH KW to M C KH KW: warpgroups multiply zeros faster than
 * anything else multiplies groups. Rows of C/g with as many zeros behind them that rows of C follow one
 * another step by one group from row to row:
 *
 *     a b            a b 0 0 0 0          a b 0 0
 *     c d     =>     c d 0 0 0 0     =>   0 0 c d      of 12 elements the first 8
 */
static MlirValue join_groups(o3_layout_t *self, const conv_t *conv) {
  o3_shape_t shape, joined;
  int64_t groups = conv->group, channels = conv->channels;
  MlirValue w = o3_layout_split(self, conv->w, 0, conv->outputs / groups);
  w = o3_layout_transpose(self, w, (int64_t[]){1, 3, 4, 0, 2});
  w = folded(self, o3_layout_pad(self, w, 4, channels, 0));
  if (!o3_layout_shape(w, &shape)) return w;
  o3_shape_t flat = shape;
  flat.rank = 4;
  flat.dims[3] = o3_expr_const(self->context, groups * (channels + conv->group_channels));
  w = o3_layout_reshape(self, w, &flat);
  w = o3_layout_cut(self, w, 3, 0, o3_expr_const(self->context, groups * channels));
  shape.dims[4] = o3_expr_const(self->context, channels);
  w = o3_layout_reshape(self, w, &shape);
  joined = conv->w_shape;
  joined.dims[1] = shape.dims[4];
  return o3_layout_reshape(self, o3_layout_transpose(self, w, (int64_t[]){3, 0, 4, 1, 2}), &joined);
}

/* The input of few channels with its border, where nothing else has it blocked already: windows then walk it
 * without looking where it ends, and a row of a window is one run of channels. */
static MlirValue padded_input(o3_layout_t *self, conv_t *conv, int64_t channels) {
  enum { RUN = 64 };
  int64_t width = o3_layout_size(&conv->w_shape, 3);
  if (is_depthwise(conv) || channels * width > RUN || conv->dilations[1] != 1) return (MlirValue){0};
  MlirValue x = o3_layout_pack_padded(self, conv->x, conv->pads);
  if (!mlirValueIsNull(x)) memset(conv->pads, 0, sizeof(conv->pads));
  return x;
}

/* A part of the channels of another image is read as all of it, if these are not many more: kernels walk
 * whole positions. */
static void read_whole(last_input_t *in, const conv_t *conv) {
  enum { MOST = 4 };
  MlirOperation def = o3_value_def(in->x);
  int64_t axis, step, start = -1;
  o3_shape_t starts, whole;
  if (is_depthwise(conv) || mlirOperationIsNull(def) || !o3_op_is(def, "o3.slice")) return;
  if (o3_op_ints(def, "axes", &axis, 1) != 1 || o3_op_ints(def, "steps", &step, 1) != 1) return;
  o3_shape_from_attr(o3_op_attr(def, "starts"), &starts);
  MlirValue x = mlirOperationGetOperand(def, 0);
  bool fits = starts.rank == 1 && axis == 4 && step == 1 && o3_expr_is_const(starts.dims[0], &start) &&
              o3_layout_shape(x, &whole) && o3_layout_size(&whole, 4) <= MOST * conv->channels;
  if (fits) *in = (last_input_t){x, start, o3_layout_size(&whole, 4)};
}

static MlirValue build_last(o3_layout_t *self, conv_t conv, const o3_shape_t *y_shape) {
  if (conv.group > 1 && !is_depthwise(&conv)) {
    conv.w = join_groups(self, &conv);
    conv.group = 1;
    conv.group_channels = conv.channels;
  }
  int64_t channels = o3_layout_lanes(self, conv.channels), outputs = o3_layout_lanes(self, conv.outputs);
  last_input_t in = {padded_input(self, &conv, channels), 0, channels};
  o3_shape_t shape;
  if (mlirValueIsNull(in.x)) {
    in.x = o3_layout_pack(self, conv.x, false);
    if (!mlirValueIsNull(in.x)) read_whole(&in, &conv);
  }
  MlirValue operands[3] = {in.x, last_weights(self, &conv, outputs, &in)};
  if (!mlirValueIsNull(conv.b)) operands[2] = o3_layout_pad(self, conv.b, 0, outputs - conv.outputs, 0);
  o3_layout_blocked_shape(self, y_shape, &shape);
  return o3_layout_op(self, is_depthwise(&conv) ? "o3.depthwise_last" : "o3.conv_last", &shape,
                      o3_type_element(mlirValueGetType(conv.x)), mlirValueIsNull(conv.b) ? 2 : 3, operands,
                      O3_ATTRS({"strides", o3_attr_ints(self->context, 2, conv.strides)},
                               {"dilations", o3_attr_ints(self->context, 2, conv.dilations)},
                               {"pads", o3_attr_ints(self->context, 4, conv.pads)},
                               {"columns", has_columns(self, &conv) ? o3_attr_bool(self->context, true)
                                                                    : mlirAttributeGetNull()}));
}

static MlirValue build_dense(o3_layout_t *self, const conv_t *conv, const o3_shape_t *y_shape) {
  if (self->last) return o3_layout_unpack(self, build_last(self, *conv, y_shape), y_shape);
  int tile = winograd_tile(self, conv, y_shape);
  MlirValue blocked = tile ? build_winograd(self, conv, y_shape, tile) : build_conv(self, conv, y_shape);
  return mlirValueIsNull(blocked) ? blocked : o3_layout_unpack(self, blocked, y_shape);
}

MlirValue o3_layout_conv(o3_layout_t *self, MlirOperation op) {
  conv_t conv;
  bool sparse = o3_layout_is_sparse(op);
  if (!read_conv(self, op, &conv) || !(sparse || is_blocked(self, &conv))) return (MlirValue){0};
  o3_shape_t y_shape = conv.y_shape;
  bool one_dimension = y_shape.rank == 3;
  if (one_dimension) {
    widen(&conv.x_shape, self->context);
    widen(&conv.w_shape, self->context);
    widen(&y_shape, self->context);
    conv.x = o3_layout_reshape(self, conv.x, &conv.x_shape);
    conv.w = o3_layout_reshape(self, conv.w, &conv.w_shape);
  }
  MlirValue plain = sparse ? build_sparse(self, &conv, &y_shape) : build_dense(self, &conv, &y_shape);
  if (mlirValueIsNull(plain)) return plain;
  return one_dimension ? o3_layout_reshape(self, plain, &conv.y_shape) : plain;
}

/* ---- Transposed convolutions ----
 *
 * Position s * q + a of the result reads x[q - t] * w[s * t + a]: for each phase a below the stride s a
 * convolution of its own with the weights in reverse, and all phases are one with s * s times the outputs.
 * Its results go between one another: the phases of a block of outputs in the convolution itself; those of
 * few outputs are lanes of one block first. With channels last all outputs are a block, whose phases are a
 * copy apart.
 */

typedef struct transposed {
  conv_t conv; /* the one that computes it */
  int64_t inputs, outputs, kernel[2], taps[2];
  MlirAffineExpr sizes[2]; /* of the result in full, before it is cut */
} transposed_t;

static bool read_taps(o3_layout_t *self, transposed_t *t) {
  conv_t *conv = &t->conv;
  int64_t more[2];
  if (o3_op_ints(conv->op, "output_padding", more, 2) != 2) return false;
  for (int i = 0; i < 2; ++i) {
    int64_t stride = conv->strides[i];
    t->kernel[i] = o3_layout_size(&conv->w_shape, 2 + i);
    t->taps[i] = (t->kernel[i] + stride - 1) / stride;
    bool reaches = t->kernel[i] + more[i] - conv->pads[2 + i] <= t->taps[i] * stride;
    if (conv->dilations[i] != 1 || conv->pads[i] < 0 || !reaches) return false;
    MlirAffineExpr positions =
        o3_expr_add(conv->x_shape.dims[2 + i], o3_expr_const(self->context, t->taps[i] - 1));
    t->sizes[i] = o3_expr_mul(positions, o3_expr_const(self->context, stride));
    conv->phases[i] = stride;
  }
  return true;
}

static bool read_transposed(o3_layout_t *self, MlirOperation op, transposed_t *t) {
  *t = (transposed_t){.conv = {.op = op, .group = o3_op_int(op, "group", 1)}};
  conv_t *conv = &t->conv;
  if (!read_shapes(self, conv) || conv->x_shape.rank != 4 || conv->group != 1) return false;
  if (self->last && !has_known_sizes(conv)) return false;
  read_window(conv, 2);
  for (int i = 0; i < 4; ++i) {
    if (o3_layout_size(&conv->w_shape, i) <= 0) return false;
  }
  t->inputs = o3_layout_size(&conv->w_shape, 0);
  t->outputs = o3_layout_size(&conv->w_shape, 1);
  conv->shuffled = self->last ? t->outputs >= O3_LAYOUT_LAST_UNIT
                              : t->outputs * conv->strides[0] * conv->strides[1] > LANES;
  return read_taps(self, t);
}

/* Outputs whose phases lie one after the other. */
static int64_t block_of(const o3_layout_t *self, const transposed_t *t) {
  return t->conv.shuffled ? o3_layout_lanes(self, t->outputs) : 1;
}

/* C M KH KW to M a b C T T, outputs in blocks, if there are any: M/16 a b 16 C T T; the first ones are one.
 */
static MlirValue phase_weights(o3_layout_t *self, const transposed_t *t) {
  const conv_t *conv = &t->conv;
  int64_t block = block_of(self, t), rounded = o3_layout_round_up(t->outputs, block);
  MlirValue w = o3_layout_pad(self, conv->w, 1, rounded - t->outputs, 0);
  for (int i = 0; i < 2; ++i)
    w = o3_layout_pad(self, w, 2 + i, t->taps[i] * conv->phases[i] - t->kernel[i], 0);
  w = o3_layout_split(self, o3_layout_split(self, w, 3, conv->phases[1]), 2, conv->phases[0]);
  w = o3_layout_split(self, w, 1, block);
  o3_shape_t shape;
  if (!o3_layout_shape(w, &shape)) return w;
  w = o3_layout_op(self, "o3.reverse", &shape, o3_type_element(mlirValueGetType(w)), 1, &w,
                   O3_ATTRS({"axes", o3_attr_ints(self->context, 2, (int64_t[]){3, 5})}));
  w = o3_layout_transpose(self, w, (int64_t[]){1, 4, 6, 2, 0, 3, 5});
  const int64_t sizes[] = {rounded * conv->phases[0] * conv->phases[1], t->inputs, t->taps[0], t->taps[1]};
  shape.rank = 4;
  for (int i = 0; i < 4; ++i) shape.dims[i] = o3_expr_const(self->context, sizes[i]);
  return o3_layout_reshape(self, w, &shape);
}

/* Lanes (m, a, b), or with channels last (a, b, m), read a bias for each. */
static MlirValue phase_bias(o3_layout_t *self, const transposed_t *t) {
  const conv_t *conv = &t->conv;
  int64_t phases = conv->phases[0] * conv->phases[1],
          rounded = o3_layout_round_up(t->outputs, block_of(self, t));
  if (mlirValueIsNull(conv->b) || (conv->shuffled && !self->last)) return conv->b;
  int outputs = conv->shuffled, copies = !outputs;
  o3_shape_t shape = {.rank = 2};
  shape.dims[outputs] = o3_expr_const(self->context, rounded);
  shape.dims[copies] = o3_expr_const(self->context, 1);
  MlirValue b = o3_layout_pad(self, conv->b, 0, rounded - t->outputs, 0);
  b = o3_layout_reshape(self, b, &shape);
  shape.dims[copies] = o3_expr_const(self->context, phases);
  b = o3_layout_op(self, "o3.broadcast", &shape, o3_type_element(mlirValueGetType(b)), 1, &b, 0, NULL);
  shape = (o3_shape_t){.rank = 1, .dims = {o3_expr_const(self->context, rounded * phases)}};
  return o3_layout_reshape(self, b, &shape);
}

/* N 1 H W (m, a, b) to N M H a W b. */
static MlirValue spread_lanes(o3_layout_t *self, const transposed_t *t, MlirValue blocked, o3_shape_t *full) {
  o3_shape_t shape;
  const conv_t *conv = &t->conv;
  int64_t lanes = t->outputs * conv->phases[0] * conv->phases[1];
  blocked = o3_layout_cut(self, blocked, 4, 0, o3_expr_const(self->context, lanes));
  if (!o3_layout_shape(blocked, &shape)) return blocked;
  shape.dims[1] = shape.dims[2];
  shape.dims[2] = shape.dims[3];
  shape.dims[3] = o3_expr_const(self->context, t->outputs);
  for (int i = 0; i < 2; ++i) shape.dims[4 + i] = o3_expr_const(self->context, conv->phases[i]);
  shape.rank = 6;
  blocked = o3_layout_reshape(self, blocked, &shape);
  return o3_layout_reshape(self, o3_layout_transpose(self, blocked, (int64_t[]){0, 3, 1, 4, 2, 5}), full);
}

/* N 1 H W (a, b, m) to N 1 (H a) (W b) m. */
static MlirValue join_phases(o3_layout_t *self, const transposed_t *t, MlirValue blocked,
                             const o3_shape_t *full) {
  o3_shape_t shape, joined;
  if (!o3_layout_shape(blocked, &shape)) return blocked;
  for (int i = 0; i < 2; ++i) shape.dims[4 + i] = o3_expr_const(self->context, t->conv.phases[i]);
  shape.dims[6] = o3_expr_const(self->context, block_of(self, t));
  shape.rank = 7;
  blocked = o3_layout_reshape(self, blocked, &shape);
  o3_layout_blocked_shape(self, full, &joined);
  return o3_layout_reshape(self, o3_layout_transpose(self, blocked, (int64_t[]){0, 1, 2, 4, 3, 5, 6}),
                           &joined);
}

/* With channels last: all phases of all outputs are its outputs. */
static MlirValue build_phases(o3_layout_t *self, const transposed_t *t, const conv_t *conv, o3_shape_t part,
                              const o3_shape_t *full) {
  part.dims[1] = o3_expr_const(self->context, conv->outputs);
  MlirValue y = build_last(self, *conv, &part);
  return mlirValueIsNull(y) || !conv->shuffled ? y : join_phases(self, t, y, full);
}

MlirValue o3_layout_conv_transpose(o3_layout_t *self, MlirOperation op) {
  transposed_t t;
  if (!read_transposed(self, op, &t)) return (MlirValue){0};
  conv_t conv = t.conv;
  o3_shape_t full = conv.y_shape, part = conv.y_shape;
  int64_t phases = conv.phases[0] * conv.phases[1];
  conv.w = phase_weights(self, &t);
  conv.b = phase_bias(self, &t);
  if (!o3_layout_shape(conv.w, &conv.w_shape)) return (MlirValue){0};
  conv.channels = conv.group_channels = t.inputs;
  conv.outputs = o3_layout_size(&conv.w_shape, 0);
  conv.phase_outputs = conv.shuffled ? t.outputs : conv.outputs;
  for (int i = 0; i < 2; ++i) {
    conv.pads[i] = conv.pads[2 + i] = t.taps[i] - 1;
    conv.strides[i] = 1;
    full.dims[2 + i] = t.sizes[i];
    part.dims[2 + i] = o3_expr_floor_div(t.sizes[i], o3_expr_const(self->context, conv.phases[i]));
  }
  part.dims[1] = o3_expr_const(self->context, t.outputs * phases);
  MlirValue y = self->last ? build_phases(self, &t, &conv, part, &full)
                           : build_conv(self, &conv, conv.shuffled ? &full : &part);
  if (mlirValueIsNull(y)) return y;
  if (!conv.shuffled) y = spread_lanes(self, &t, y, &full);
  for (int i = 0; i < 2; ++i) y = o3_layout_cut(self, y, 2 + i, t.conv.pads[i], conv.y_shape.dims[2 + i]);
  return conv.shuffled ? o3_layout_unpack(self, y, &conv.y_shape) : y;
}

/* ---- Matrix products ---- */

static MlirValue build_sparse_matmul(o3_layout_t *self, MlirOperation op, int64_t depth, int64_t columns,
                                     const o3_shape_t *y_shape) {
  MlirValue a = mlirOperationGetOperand(op, 0);
  o3_sparse_weight_t weight = {.is_matmul = true,
                               .is_f32 = true,
                               .outputs = columns,
                               .channels = depth,
                               .group = 1,
                               .window = {1, 1},
                               .strides = {1, columns, 0, 0}};
  o3_layout_sparse_t sparse;
  if (!o3_layout_store_sparse(self, op, &weight, &sparse)) return (MlirValue){0};
  o3_shape_t flat = *y_shape;
  if (sparse.is_plain) a = o3_layout_row_panels(self, a, &flat);
  if (sparse.is_plain) flat.dims[flat.rank - 1] = y_shape->dims[y_shape->rank - 1];
  MlirValue operands[4] = {a, sparse.values, sparse.rows, sparse.columns};
  MlirValue y = o3_layout_op(self, "o3.matmul_sparse", &flat, o3_type_element(mlirValueGetType(a)), 4,
                             operands, O3_ATTRS({"encoding", sparse.encoding}));
  return flat.rank == y_shape->rank ? y : o3_layout_reshape(self, y, y_shape);
}

MlirValue o3_layout_matmul(o3_layout_t *self, MlirOperation op) {
  MlirValue a = mlirOperationGetOperand(op, 0), b = mlirOperationGetOperand(op, 1),
            y = mlirOperationGetResult(op, 0);
  o3_shape_t b_shape, y_shape;
  bool known = !self->last && o3_layout_shape(b, &b_shape) && o3_layout_shape(y, &y_shape);
  if (!known || b_shape.rank != 2 || mlirShapedTypeGetRank(mlirValueGetType(a)) != y_shape.rank ||
      !o3_layout_is_constant(b))
    return (MlirValue){0};
  int64_t depth = o3_layout_size(&b_shape, 0), columns = o3_layout_size(&b_shape, 1);
  if (!o3_layout_is_f32(a) || !o3_layout_is_f32(b) || !o3_layout_is_f32(y) || depth <= 0 || columns <= 0)
    return (MlirValue){0};
  if (o3_layout_is_sparse(op)) return build_sparse_matmul(self, op, depth, columns, &y_shape);
  b = o3_layout_pad(self, b, 1, o3_layout_round_up(columns, LANES) - columns, 0);
  b = o3_layout_transpose(self, o3_layout_split(self, b, 1, LANES), (int64_t[]){1, 0, 2});
  MlirValue operands[2] = {a, b};
  return o3_layout_op(self, "o3.matmul_packed", &y_shape, o3_type_element(mlirValueGetType(y)), 2, operands,
                      0, NULL);
}
