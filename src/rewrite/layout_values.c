#include <string.h>

#include "rewrite/layout.h"
#include "rewrite/rewrite_ir.h"

/* ---- Values and ops ---- */

static MlirAttribute argument_shape(MlirValue value) {
  MlirOperation func = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
  MlirAttribute list = o3_op_attr(func, "arg_attrs");
  intptr_t index = mlirBlockArgumentGetArgNumber(value);
  if (mlirAttributeIsNull(list) || index >= mlirArrayAttrGetNumElements(list)) return mlirAttributeGetNull();
  return mlirDictionaryAttrGetElementByName(mlirArrayAttrGetElement(list, index), O3_STR("o3.shape"));
}

bool o3_layout_shape(MlirValue value, o3_shape_t *shape) {
  MlirType type = mlirValueGetType(value);
  MlirAttribute attr = mlirAttributeGetNull();
  if (!mlirTypeIsARankedTensor(type)) return false;
  if (mlirValueIsAOpResult(value)) {
    attr = o3_op_attr(mlirOpResultGetOwner(value), "o3.shape");
    if (!mlirAttributeIsNull(attr)) attr = mlirArrayAttrGetElement(attr, mlirOpResultGetResultNumber(value));
  } else {
    attr = argument_shape(value);
  }
  bool known = !mlirAttributeIsNull(attr) && mlirAttributeIsAAffineMap(attr);
  if (known) o3_shape_from_attr(attr, shape);
  if (!known && o3_type_is_static(type)) o3_shape_from_type(type, shape);
  return known || o3_type_is_static(type);
}

MlirValue o3_layout_op(o3_layout_t *self, const char *name, const o3_shape_t *shape, MlirType element,
                       int num_operands, const MlirValue *operands, int num_attrs, const o3_attr_t *attrs) {
  enum { MAX_ATTRS = 24 };
  o3_attr_t all[MAX_ATTRS + 1];
  MlirAttribute map = o3_shape_attr(self->context, shape, self->num_symbols);
  for (int i = 0; i < num_attrs && i < MAX_ATTRS; ++i) all[i] = attrs[i];
  if (!o3_shape_is_static(shape))
    all[num_attrs++] = (o3_attr_t){"o3.shape", mlirArrayAttrGet(self->context, 1, &map)};
  return o3_build1_attrs(&self->builder, name, o3_shape_type(shape, element), num_operands, operands,
                         num_attrs, all);
}

static MlirType element_of(MlirValue value) { return o3_type_element(mlirValueGetType(value)); }

static void shape_of(MlirValue value, o3_shape_t *shape) {
  /* Values that rules build have one. */
  if (!o3_layout_shape(value, shape)) shape->rank = 0;
}

MlirValue o3_layout_reshape(o3_layout_t *self, MlirValue value, const o3_shape_t *shape) {
  return o3_layout_op(self, "o3.reshape", shape, element_of(value), 1, &value, 0, NULL);
}

MlirValue o3_layout_transpose(o3_layout_t *self, MlirValue value, const int64_t *perm) {
  o3_shape_t from, to;
  shape_of(value, &from);
  to = from;
  for (int i = 0; i < from.rank; ++i) to.dims[i] = from.dims[perm[i]];
  return o3_layout_op(self, "o3.transpose", &to, element_of(value), 1, &value,
                      O3_ATTRS({"perm", o3_attr_ints(self->context, from.rank, perm)}));
}

static MlirValue scalar(o3_layout_t *self, MlirType element, double number) {
  MlirType type = o3_tensor_type(0, NULL, element);
  MlirAttribute value = mlirDenseElementsAttrSplatGet(type, o3_attr_float(element, number));
  return o3_build1_attrs(&self->builder, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", value}));
}

MlirValue o3_layout_pad(o3_layout_t *self, MlirValue value, int axis, int64_t extra, double fill) {
  return o3_layout_pad_ends(self, value, axis, 0, extra, fill);
}

MlirValue o3_layout_pad_ends(o3_layout_t *self, MlirValue value, int axis, int64_t before, int64_t behind,
                             double fill) {
  o3_shape_t shape, ends = {0};
  if (before == 0 && behind == 0) return value;
  shape_of(value, &shape);
  ends.rank = shape.rank;
  for (int i = 0; i < shape.rank; ++i) ends.dims[i] = o3_expr_const(self->context, 0);
  ends.dims[axis] = o3_expr_const(self->context, before);
  MlirAttribute lows = o3_shape_attr(self->context, &ends, self->num_symbols);
  ends.dims[axis] = o3_expr_const(self->context, behind);
  MlirAttribute highs = o3_shape_attr(self->context, &ends, self->num_symbols);
  shape.dims[axis] = o3_expr_add(shape.dims[axis], o3_expr_const(self->context, before + behind));
  MlirValue operands[2] = {value, scalar(self, element_of(value), fill)};
  return o3_layout_op(
      self, "o3.pad", &shape, element_of(value), 2, operands,
      O3_ATTRS({"lows", lows}, {"highs", highs}, {"mode", o3_attr_string(self->context, "constant")}));
}

static void insert_dim(o3_shape_t *shape, int at, MlirAffineExpr dim) {
  memmove(&shape->dims[at + 1], &shape->dims[at], (size_t)(shape->rank - at) * sizeof(shape->dims[0]));
  shape->dims[at] = dim;
  ++shape->rank;
}

MlirValue o3_layout_split(o3_layout_t *self, MlirValue value, int axis, int64_t inner) {
  o3_shape_t shape;
  MlirAffineExpr size = o3_expr_const(self->context, inner);
  shape_of(value, &shape);
  shape.dims[axis] = o3_expr_floor_div(shape.dims[axis], size);
  insert_dim(&shape, axis + 1, size);
  return o3_layout_reshape(self, value, &shape);
}

MlirValue o3_layout_cut(o3_layout_t *self, MlirValue value, int axis, int64_t start, MlirAffineExpr size) {
  o3_shape_t shape, starts = {.rank = 1, .dims = {o3_expr_const(self->context, start)}};
  int64_t axes = axis, steps = 1;
  shape_of(value, &shape);
  if (start == 0 && o3_expr_equal(shape.dims[axis], size)) return value;
  shape.dims[axis] = size;
  return o3_layout_op(self, "o3.slice", &shape, element_of(value), 1, &value,
                      O3_ATTRS({"axes", o3_attr_ints(self->context, 1, &axes)},
                               {"starts", o3_shape_attr(self->context, &starts, self->num_symbols)},
                               {"steps", o3_attr_ints(self->context, 1, &steps)}));
}

bool o3_layout_is_constant(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is_pure(def) || o3_op_reads_sizes(def)) return false;
  if (o3_op_is(def, "o3.constant")) return true;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def); ++i) {
    if (!o3_layout_is_constant(mlirOperationGetOperand(def, i))) return false;
  }
  return mlirOperationGetNumOperands(def) > 0;
}

bool o3_layout_is_f32(MlirValue value) { return mlirTypeIsAF32(element_of(value)); }

bool o3_layout_has_products(const o3_layout_t *self, MlirValue value) {
  MlirType element = element_of(value);
  bool half = mlirTypeIsAF16(element) || mlirTypeIsABF16(element);
  return (self->last && half) || ((!self->last || self->f32_last) && mlirTypeIsAF32(element));
}

bool o3_layout_has_blocks(const o3_layout_t *self, MlirValue value) {
  return o3_layout_is_f32(value) || o3_layout_has_products(self, value);
}

int64_t o3_layout_size(const o3_shape_t *shape, int dim) {
  int64_t size;
  return dim >= 0 && dim < shape->rank && o3_expr_is_const(shape->dims[dim], &size) ? size : -1;
}

/* ---- Blocked values ---- */

int64_t o3_layout_lanes(const o3_layout_t *self, int64_t channels) {
  return self->last ? o3_layout_round_up(channels, O3_LAYOUT_LAST_UNIT) : O3_BLOCK_LANES;
}

void o3_layout_blocked_shape(const o3_layout_t *self, const o3_shape_t *plain, o3_shape_t *blocked) {
  MlirAffineExpr lanes = o3_expr_const(self->context, o3_layout_lanes(self, o3_layout_size(plain, 1)));
  *blocked = *plain;
  blocked->dims[1] = o3_expr_ceil_div(plain->dims[1], lanes);
  insert_dim(blocked, 4, lanes);
}

MlirValue o3_layout_find(const o3_layout_t *self, MlirValue plain) {
  return (MlirValue){.ptr = o3_ptr_map_get(self->blocked, plain.ptr)};
}

static void note(o3_layout_t *self, o3_ptr_map_t *map, MlirValue plain, MlirValue blocked) {
  if (!o3_ptr_map_put(map, plain.ptr, (void *)(uintptr_t)blocked.ptr)) self->failed = true;
}

/* The channels, at |axis| of the last three dimensions, in blocks of |lanes|: ... C H W to ... C/lanes H W
 * lanes. With positions of one there is nothing to move. */
static MlirValue block_channels(o3_layout_t *self, MlirValue plain, int axis, int64_t lanes, double fill) {
  o3_shape_t shape;
  int64_t perm[O3_IR_MAX_RANK];
  shape_of(plain, &shape);
  int64_t channels = o3_layout_size(&shape, axis);
  MlirValue value = o3_layout_pad(self, plain, axis, o3_layout_round_up(channels, lanes) - channels, fill);
  value = o3_layout_split(self, value, axis, lanes);
  if (o3_layout_size(&shape, axis + 1) == 1 && o3_layout_size(&shape, axis + 2) == 1) {
    shape.dims[axis] = o3_expr_const(self->context, o3_layout_round_up(channels, lanes) / lanes);
    insert_dim(&shape, shape.rank, o3_expr_const(self->context, lanes));
    return o3_layout_reshape(self, value, &shape);
  }
  for (int i = 0; i <= axis; ++i) perm[i] = i;
  perm[axis + 1] = axis + 2;
  perm[axis + 2] = axis + 3;
  perm[axis + 3] = axis + 1;
  return o3_layout_transpose(self, value, perm);
}

/* The value that |plain| is a conversion of, to another float; itself when it is none. */
static MlirValue before_cast(MlirValue plain) {
  MlirOperation def = o3_value_def(plain);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.cast")) return plain;
  MlirValue from = mlirOperationGetOperand(def, 0);
  return o3_type_is_float(element_of(from)) ? from : plain;
}

static MlirValue pack_last(o3_layout_t *self, MlirValue plain, const int64_t pads[4]) {
  o3_shape_t shape, packed;
  MlirValue from = before_cast(plain);
  shape_of(plain, &shape);
  o3_layout_blocked_shape(self, &shape, &packed);
  for (int i = 0; i < 2; ++i)
    packed.dims[2 + i] = o3_expr_add(packed.dims[2 + i], o3_expr_const(self->context, pads[i] + pads[2 + i]));
  MlirAttribute ones = o3_attr_ints(self->context, 2, (int64_t[]){1, 1});
  return o3_layout_op(self, "o3.pack_last", &packed, element_of(plain), 1, &from,
                      O3_ATTRS({"kernel", ones}, {"strides", ones}, {"dilations", ones},
                               {"pads", o3_attr_ints(self->context, 4, pads)}));
}

MlirValue o3_layout_pack_padded(o3_layout_t *self, MlirValue plain, const int64_t pads[4]) {
  return mlirValueIsNull(o3_layout_find(self, plain)) ? pack_last(self, plain, pads) : (MlirValue){0};
}

/* N C H W as blocks of one channel: nothing moves. */
static MlirValue channels_apart(o3_layout_t *self, MlirValue plain) {
  o3_shape_t shape;
  shape_of(plain, &shape);
  insert_dim(&shape, shape.rank, o3_expr_const(self->context, 1));
  return o3_layout_reshape(self, plain, &shape);
}

MlirValue o3_layout_pack(o3_layout_t *self, MlirValue plain, bool narrow) {
  o3_shape_t shape;
  MlirValue found = o3_layout_find(self, plain);
  if (!mlirValueIsNull(found)) return found;
  shape_of(plain, &shape);
  int64_t channels = o3_layout_size(&shape, 1);
  int64_t lanes = o3_layout_lanes(self, channels);
  if (narrow && channels < lanes) return channels_apart(self, plain);
  bool moves = self->last && o3_layout_has_blocks(self, plain) && !o3_layout_is_constant(plain);
  MlirValue made =
      moves ? pack_last(self, plain, (int64_t[]){0, 0, 0, 0}) : block_channels(self, plain, 1, lanes, 0);
  note(self, self->blocked, plain, made);
  return made;
}

/* Ranks below 3 have no channels, and one channel is for all: both only get a lane of size 1. */
MlirValue o3_layout_pack_operand(o3_layout_t *self, MlirValue plain, int64_t channels, double fill) {
  o3_shape_t shape;
  if (!o3_layout_shape(plain, &shape) || shape.rank > 4) return (MlirValue){0};
  if (shape.rank == 0) return plain;
  int64_t own = shape.rank < 3 ? 1 : o3_layout_size(&shape, shape.rank - 3);
  if (own == channels && shape.rank == 4 && fill == 0) return o3_layout_pack(self, plain, false);
  if (own == channels && shape.rank >= 3)
    return block_channels(self, plain, shape.rank - 3, o3_layout_lanes(self, channels), fill);
  if (own != 1) return (MlirValue){0};
  insert_dim(&shape, shape.rank, o3_expr_const(self->context, 1));
  return o3_layout_reshape(self, plain, &shape);
}

MlirValue o3_layout_unpack(o3_layout_t *self, MlirValue blocked, const o3_shape_t *shape) {
  o3_shape_t padded = *shape;
  MlirValue plain = blocked;
  int64_t channels = o3_layout_size(shape, 1);
  int64_t rounded = o3_layout_round_up(channels, o3_layout_lanes(self, channels));
  padded.dims[1] = o3_expr_const(self->context, rounded);
  if (o3_layout_size(shape, 2) != 1 || o3_layout_size(shape, 3) != 1)
    plain = o3_layout_transpose(self, blocked, (int64_t[]){0, 1, 4, 2, 3});
  plain = o3_layout_reshape(self, plain, &padded);
  plain = o3_layout_cut(self, plain, 1, 0, shape->dims[1]);
  note(self, self->blocked, plain, blocked);
  return plain;
}
