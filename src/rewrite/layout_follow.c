/* Ops that take over the layout of their operands: at least one of these must be blocked already. */
#include <string.h>

#include "rewrite/layout.h"

enum { MAX_OPERANDS = 64, MAX_ATTRS = 16 };

/* ---- Helpers ---- */

static bool has_blocked_operand(const o3_layout_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    if (!mlirValueIsNull(o3_layout_find(self, mlirOperationGetOperand(op, i)))) return true;
  }
  return false;
}

/* The result's shape, when it is an image with a constant number of channels. */
static bool read_image(MlirValue value, o3_shape_t *shape) {
  return o3_layout_shape(value, shape) && shape->rank == 4 && o3_layout_size(shape, 1) > 0;
}

static MlirType result_element(MlirOperation op) {
  return o3_type_element(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

/* The op's attributes but o3.shape and those in |own|, which come first. */
static int copy_attrs(MlirOperation op, int num_own, const o3_attr_t *own, o3_attr_t *attrs) {
  int count = num_own;
  for (int i = 0; i < num_own; ++i) attrs[i] = own[i];
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op) && count < MAX_ATTRS; ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    MlirStringRef name = mlirIdentifierStr(attr.name);
    bool taken = o3_str_equal(name, "o3.shape");
    for (int k = 0; k < num_own; ++k) taken |= o3_str_equal(name, own[k].name);
    if (!taken) attrs[count++] = (o3_attr_t){name.data, attr.attribute};
  }
  return count;
}

/* The op on blocked operands, and the plain image of |shape| that its result stands for. */
static MlirValue rebuild(o3_layout_t *self, MlirOperation op, const o3_shape_t *shape, int num_operands,
                         const MlirValue *operands, int num_own, const o3_attr_t *own) {
  o3_shape_t blocked;
  o3_attr_t attrs[MAX_ATTRS];
  int count = copy_attrs(op, num_own, own, attrs);
  o3_layout_blocked_shape(self, shape, &blocked);
  MlirValue made = o3_layout_op(self, o3_op_name(op).data, &blocked, result_element(op), num_operands,
                                operands, count, attrs);
  return o3_layout_unpack(self, made, shape);
}

/* ---- Elementwise ---- */

static MlirValue elementwise(o3_layout_t *self, MlirOperation op, int filled) {
  o3_shape_t shape;
  MlirValue operands[MAX_OPERANDS];
  int count = (int)mlirOperationGetNumOperands(op);
  bool fits = count <= MAX_OPERANDS && read_image(mlirOperationGetResult(op, 0), &shape) &&
              has_blocked_operand(self, op);
  if (!fits) return (MlirValue){0};
  for (int i = 0; i < count; ++i) {
    operands[i] = o3_layout_pack_operand(self, mlirOperationGetOperand(op, i), o3_layout_size(&shape, 1),
                                         i == filled ? 1 : 0);
    if (mlirValueIsNull(operands[i])) return (MlirValue){0};
  }
  return rebuild(self, op, &shape, count, operands, 0, NULL);
}

MlirValue o3_layout_elementwise(o3_layout_t *self, MlirOperation op) { return elementwise(self, op, -1); }

/* Between f32 and half precision, which is what channels last come with. */
MlirValue o3_layout_cast(o3_layout_t *self, MlirOperation op) {
  bool fits = self->last && o3_layout_has_blocks(self, mlirOperationGetOperand(op, 0)) &&
              o3_layout_has_blocks(self, mlirOperationGetResult(op, 0));
  return fits ? elementwise(self, op, -1) : (MlirValue){0};
}

/* Divisors are constants or have no channels: lanes beyond the last channel are not divided by zero. */
MlirValue o3_layout_divide(o3_layout_t *self, MlirOperation op) {
  o3_shape_t shape;
  MlirValue divisor = mlirOperationGetOperand(op, 1);
  if (!o3_layout_shape(divisor, &shape)) return (MlirValue){0};
  bool shared = shape.rank < 3 || o3_layout_size(&shape, shape.rank - 3) == 1;
  if (!o3_layout_has_blocks(self, divisor) || !(shared || o3_layout_is_constant(divisor)))
    return (MlirValue){0};
  return elementwise(self, op, 1);
}

/* ---- Windows and reductions ---- */

/* The lanes are a third spatial dimension, of windows of one. */
static MlirAttribute with_lanes(o3_layout_t *self, MlirOperation op, const char *name, int64_t value) {
  int64_t values[8];
  int count = o3_op_ints(op, name, values, 4);
  if (count == 4) {
    memmove(values + 3, values + 2, 2 * sizeof(int64_t));
    values[2] = values[5] = value;
    return o3_attr_ints(self->context, 6, values);
  }
  values[2] = value;
  return o3_attr_ints(self->context, 3, values);
}

/* Small windows of maxima, which need no border: it changes nothing. */
static MlirValue max_pool_last(o3_layout_t *self, MlirOperation op, MlirValue x, const o3_shape_t *shape) {
  enum { TAPS = 25 };
  int64_t kernel[2];
  bool small = o3_op_ints(op, "kernel", kernel, 2) == 2 && kernel[0] * kernel[1] <= TAPS;
  if (!small || !o3_op_is(op, "o3.max_pool") || !o3_layout_has_blocks(self, x)) return (MlirValue){0};
  o3_shape_t blocked;
  o3_layout_blocked_shape(self, shape, &blocked);
  MlirValue made =
      o3_layout_op(self, "o3.max_pool_last", &blocked, result_element(op), 1, &x,
                   O3_ATTRS({"kernel", o3_op_attr(op, "kernel")}, {"strides", o3_op_attr(op, "strides")},
                            {"dilations", o3_op_attr(op, "dilations")}, {"pads", o3_op_attr(op, "pads")}));
  return o3_layout_unpack(self, made, shape);
}

MlirValue o3_layout_pool(o3_layout_t *self, MlirOperation op) {
  o3_shape_t shape;
  MlirValue x = o3_layout_find(self, mlirOperationGetOperand(op, 0));
  if (mlirValueIsNull(x) || !read_image(mlirOperationGetResult(op, 0), &shape)) return (MlirValue){0};
  MlirValue last = self->last ? max_pool_last(self, op, x, &shape) : (MlirValue){0};
  if (!mlirValueIsNull(last)) return last;
  const o3_attr_t own[] = {{"kernel", with_lanes(self, op, "kernel", 1)},
                           {"strides", with_lanes(self, op, "strides", 1)},
                           {"dilations", with_lanes(self, op, "dilations", 1)},
                           {"pads", with_lanes(self, op, "pads", 0)}};
  return rebuild(self, op, &shape, 1, &x, 4, own);
}

/* Over positions; without keepdims over all of them, which leaves N x C. */
MlirValue o3_layout_reduce(o3_layout_t *self, MlirOperation op) {
  o3_shape_t x_shape, shape;
  int64_t axes[O3_IR_MAX_RANK];
  MlirValue plain = mlirOperationGetOperand(op, 0), x = o3_layout_find(self, plain);
  int count = o3_op_ints(op, "axes", axes, O3_IR_MAX_RANK);
  bool keepdims = o3_op_bool(op, "keepdims", false);
  if (mlirValueIsNull(x) || count < 1 || !read_image(plain, &x_shape) || !(keepdims || count == 2))
    return (MlirValue){0};
  for (int i = 0; i < count; ++i) {
    if (axes[i] < 2) return (MlirValue){0};
  }
  shape = x_shape;
  for (int i = 0; i < count; ++i) shape.dims[axes[i]] = o3_expr_const(self->context, 1);
  const o3_attr_t own[] = {{"keepdims", o3_attr_bool(self->context, true)}};
  MlirValue made = rebuild(self, op, &shape, 1, &x, 1, own);
  shape.rank = 2;
  return keepdims ? made : o3_layout_reshape(self, made, &shape);
}

/* ---- Moving data ---- */

/* What channels are joined and cut at: blocks, of which the last one may have less; or units of a block. */
static int64_t channel_unit(const o3_layout_t *self) {
  return self->last ? O3_LAYOUT_LAST_UNIT : O3_BLOCK_LANES;
}

/* Parts that are joined end at these at least. */
static int64_t whole_unit(const o3_layout_t *self) {
  return self->last ? O3_LAYOUT_LAST_UNIT : O3_BLOCK_LANES / 2;
}

/* The dimension of a blocked value that channels are joined and cut along. */
static int64_t channel_axis(const o3_layout_t *self) { return self->last ? 4 : 1; }

/* ---- Channels joined in halves of blocks ---- */

enum { HALF = O3_BLOCK_LANES / 2, MAX_BLOCKS = 32 };

typedef struct halves {
  o3_layout_t *self;
  MlirType element;
  int count; /* of halves, in order: each is half |at| of a part */
  MlirValue parts[2 * MAX_BLOCKS];
  int64_t at[2 * MAX_BLOCKS];
} halves_t;

/* The parts' halves; false when a part but the last ends within one, or they are too many. */
static bool list_halves(halves_t *h, MlirOperation op, int count, MlirValue *operands) {
  o3_shape_t part;
  for (int i = 0; i < count; ++i) {
    MlirValue plain = mlirOperationGetOperand(op, i);
    if (!read_image(plain, &part)) return false;
    int64_t size = o3_layout_size(&part, 1), num = (size + HALF - 1) / HALF;
    if ((size % HALF && i + 1 < count) || h->count + num > 2 * MAX_BLOCKS - 1) return false;
    for (int64_t at = 0; at < num; ++at) {
      h->parts[h->count] = operands[i];
      h->at[h->count++] = at;
    }
  }
  return true;
}

/* |block| of a blocked value: |size| of its lanes from |start| on. */
static MlirValue cut_lanes(o3_layout_t *self, MlirValue value, int64_t block, int64_t start, int64_t size) {
  MlirValue cut = o3_layout_cut(self, value, 1, block, o3_expr_const(self->context, 1));
  return o3_layout_cut(self, cut, 4, start, o3_expr_const(self->context, size));
}

static MlirValue join(halves_t *h, int axis, int count, const MlirValue *values) {
  o3_shape_t shape, other;
  if (count == 1 || !o3_layout_shape(values[0], &shape)) return values[0];
  for (int i = 1; i < count; ++i) {
    if (o3_layout_shape(values[i], &other))
      shape.dims[axis] = o3_expr_add(shape.dims[axis], other.dims[axis]);
  }
  return o3_layout_op(h->self, "tensor.concat", &shape, h->element, count, values,
                      O3_ATTRS({"dim", o3_attr_i64(h->self->context, axis)}));
}

/* Halves |i| and the next, which may not be there. */
static MlirValue build_block(halves_t *h, int i) {
  int64_t block = h->at[i] / 2, lane = h->at[i] % 2 * HALF;
  bool has_next = i + 1 < h->count;
  bool whole =
      lane == 0 && has_next && mlirValueEqual(h->parts[i], h->parts[i + 1]) && h->at[i + 1] == h->at[i] + 1;
  if (whole) return cut_lanes(h->self, h->parts[i], block, 0, O3_BLOCK_LANES);
  MlirValue halves[2] = {cut_lanes(h->self, h->parts[i], block, lane, HALF)};
  if (!has_next) return o3_layout_pad(h->self, halves[0], 4, HALF, 0);
  halves[1] = cut_lanes(h->self, h->parts[i + 1], h->at[i + 1] / 2, h->at[i + 1] % 2 * HALF, HALF);
  return join(h, 4, 2, halves);
}

/* Parts of whole halves: each block of the result is one of a part, or of two halves. */
static MlirValue concat_halves(o3_layout_t *self, MlirOperation op, int count, MlirValue *operands,
                               const o3_shape_t *shape) {
  halves_t h = {.self = self, .element = result_element(op)};
  MlirValue blocks[MAX_BLOCKS];
  if (self->last || !list_halves(&h, op, count, operands)) return (MlirValue){0};
  for (int i = 0; i < h.count; i += 2) blocks[i / 2] = build_block(&h, i);
  return o3_layout_unpack(self, join(&h, 1, (h.count + 1) / 2, blocks), shape);
}

/* Along channels all parts but the last must be whole blocks, or whole halves of them. */
MlirValue o3_layout_concat(o3_layout_t *self, MlirOperation op) {
  o3_shape_t shape, part;
  MlirValue operands[MAX_OPERANDS];
  int count = (int)mlirOperationGetNumOperands(op);
  int64_t axis = o3_op_int(op, "dim", -1);
  bool whole = true;
  if (count > MAX_OPERANDS || !has_blocked_operand(self, op)) return (MlirValue){0};
  if (!read_image(mlirOperationGetResult(op, 0), &shape)) return (MlirValue){0};
  for (int i = 0; i < count; ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!o3_layout_has_blocks(self, operand) || !read_image(operand, &part)) return (MlirValue){0};
    int64_t size = o3_layout_size(&part, 1), unit = whole_unit(self);
    if (axis == 1 && i + 1 < count && size % unit != 0) return (MlirValue){0};
    if (axis == 1 && i + 1 < count && size % channel_unit(self) != 0) whole = false;
  }
  for (int i = 0; i < count; ++i) operands[i] = o3_layout_pack(self, mlirOperationGetOperand(op, i), false);
  if (!whole) return concat_halves(self, op, count, operands, &shape);
  const o3_attr_t own[] = {{"dim", o3_attr_i64(self->context, axis == 1 ? channel_axis(self) : axis)}};
  return rebuild(self, op, &shape, count, operands, 1, own);
}

/* Channels are cut at whole blocks, or at the end. */
static bool cuts_blocks(o3_layout_t *self, MlirOperation op, const o3_shape_t *x, const o3_shape_t *y,
                        o3_shape_t *starts, int64_t axes[O3_IR_MAX_RANK]) {
  int64_t steps[O3_IR_MAX_RANK], start, unit = channel_unit(self);
  int count = o3_op_ints(op, "axes", axes, O3_IR_MAX_RANK);
  if (o3_op_ints(op, "steps", steps, O3_IR_MAX_RANK) != count) return false;
  o3_shape_from_attr(o3_op_attr(op, "starts"), starts);
  for (int i = 0; i < count; ++i) {
    if (axes[i] != 1) continue;
    if (steps[i] != 1 || !o3_expr_is_const(starts->dims[i], &start) || start % unit != 0) return false;
    int64_t size = o3_layout_size(y, 1);
    if (size % unit != 0 && start + size != o3_layout_size(x, 1)) return false;
    starts->dims[i] = o3_expr_const(self->context, self->last ? start : start / unit);
    axes[i] = channel_axis(self);
  }
  return true;
}

MlirValue o3_layout_slice(o3_layout_t *self, MlirOperation op) {
  o3_shape_t x_shape, shape, starts;
  int64_t axes[O3_IR_MAX_RANK];
  MlirValue plain = mlirOperationGetOperand(op, 0), x = o3_layout_find(self, plain);
  bool fits = !mlirValueIsNull(x) && read_image(plain, &x_shape) &&
              read_image(mlirOperationGetResult(op, 0), &shape) &&
              cuts_blocks(self, op, &x_shape, &shape, &starts, axes);
  if (!fits) return (MlirValue){0};
  const o3_attr_t own[] = {{"axes", o3_attr_ints(self->context, starts.rank, axes)},
                           {"starts", o3_shape_attr(self->context, &starts, self->num_symbols)}};
  return rebuild(self, op, &shape, 1, &x, 2, own);
}

MlirValue o3_layout_resize(o3_layout_t *self, MlirOperation op) {
  o3_shape_t shape;
  int64_t axes[O3_IR_MAX_RANK];
  MlirValue operands[3], x = o3_layout_find(self, mlirOperationGetOperand(op, 0));
  int count = (int)mlirOperationGetNumOperands(op);
  int num_axes = o3_op_ints(op, "axes", axes, O3_IR_MAX_RANK);
  if (mlirValueIsNull(x) || count > 3 || !read_image(mlirOperationGetResult(op, 0), &shape))
    return (MlirValue){0};
  for (int i = 0; i < num_axes; ++i) {
    if (axes[i] < 2) return (MlirValue){0};
  }
  for (int i = 0; i < count; ++i) operands[i] = i ? mlirOperationGetOperand(op, i) : x;
  return rebuild(self, op, &shape, count, operands, 0, NULL);
}

/* Channels are not padded; the lanes get none. */
MlirValue o3_layout_pad_image(o3_layout_t *self, MlirOperation op) {
  o3_shape_t shape, lows, highs;
  MlirValue x = o3_layout_find(self, mlirOperationGetOperand(op, 0));
  if (mlirValueIsNull(x) || !read_image(mlirOperationGetResult(op, 0), &shape)) return (MlirValue){0};
  o3_shape_from_attr(o3_op_attr(op, "lows"), &lows);
  o3_shape_from_attr(o3_op_attr(op, "highs"), &highs);
  if (!o3_expr_equals_const(lows.dims[1], 0) || !o3_expr_equals_const(highs.dims[1], 0))
    return (MlirValue){0};
  lows.dims[4] = highs.dims[4] = o3_expr_const(self->context, 0);
  lows.rank = highs.rank = 5;
  const o3_attr_t own[] = {{"lows", o3_shape_attr(self->context, &lows, self->num_symbols)},
                           {"highs", o3_shape_attr(self->context, &highs, self->num_symbols)}};
  MlirValue operands[2] = {x, mlirOperationGetOperand(op, 1)};
  return rebuild(self, op, &shape, 2, operands, 2, own);
}
