/* How the channels of an op's result are related to those of its operands. An op is no relation unless an
 * operand is tracked, or it is a product with constant weights, where tracking begins. */
#include <string.h>

#include "analysis/channel_state.h"
#include "analysis/shape.h"

typedef o3_status_t (*relate_fn_t)(o3_channels_t *self, o3_channel_relation_t *relation, bool *related);

/* ---- Helpers ---- */

static MlirValue operand(const o3_channel_relation_t *relation, int index) {
  return mlirOperationGetOperand(relation->op, index);
}

static MlirValue result(const o3_channel_relation_t *relation) {
  return mlirOperationGetResult(relation->op, 0);
}

static MlirType operand_type(const o3_channel_relation_t *relation, int index) {
  return mlirValueGetType(operand(relation, index));
}

static bool is_f32(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return mlirTypeIsARankedTensor(type) && mlirTypeIsAF32(o3_type_element(type));
}

const float *o3_channel_constant(const o3_channels_t *self, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant") || !is_f32(value)) return NULL;
  return o3_weights_data(self->weights, o3_op_attr(def, "value"), NULL);
}

static o3_status_t room_for_links(o3_channels_t *self, o3_channel_relation_t *relation) {
  size_t count = (size_t)mlirOperationGetNumOperands(relation->op);
  relation->links = O3_ARENA_ARRAY(self->arena, o3_channel_link_t, count + 1);
  O3_TRY_ALLOC(relation->links);
  return NULL;
}

static void add_link(o3_channel_relation_t *relation, int index, const o3_channel_axis_t *from,
                     int64_t offset, int64_t inner) {
  relation->links[relation->num_links++] = (o3_channel_link_t){index, from, offset, inner};
}

/* From operand 0 alone, with its channels at |axis| of the result. */
static o3_status_t relate_first(o3_channels_t *self, o3_channel_relation_t *relation, int axis, int64_t inner,
                                bool *related) {
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  O3_TRY(room_for_links(self, relation));
  O3_TRY(o3_channel_axis_add(self, result(relation), axis, false, &relation->to));
  *related = relation->to && relation->to->count == from->count * inner;
  if (*related) add_link(relation, 0, from, 0, inner);
  return NULL;
}

/* ---- Products ---- */

static bool is_nonzero(const o3_channel_weights_t *weights, int64_t output, int64_t input) {
  const float *at = weights->w + output * weights->output_stride + input * weights->input_stride;
  for (int64_t p = 0; p < weights->positions; ++p)
    if (at[p * weights->position_stride] != 0) return true;
  return false;
}

/* PART at once are a loop of vectors to a compiler. */
static bool has_zero(const float *data, int64_t count) {
  enum { PART = 64 };
  for (; count >= PART; count -= PART, data += PART) {
    int zeros = 0;
    for (int i = 0; i < PART; ++i) zeros += data[i] == 0;
    if (zeros) return true;
  }
  for (int64_t i = 0; i < count; ++i)
    if (data[i] == 0) return true;
  return false;
}

/* Weights that have no zero, as most of networks that nobody has pruned, are done with in one walk, in the
 * order of memory. */
static o3_status_t find_nonzero(o3_channels_t *self, o3_channel_weights_t *weights) {
  int64_t outputs = weights->groups * weights->outputs, pairs = outputs * weights->inputs;
  weights->nonzero = NULL;
  if (!has_zero(weights->w, pairs * weights->positions)) return NULL;
  uint8_t *nonzero = O3_ARENA_ARRAY(self->arena, uint8_t, (size_t)pairs / 8 + 1);
  O3_TRY_ALLOC(nonzero);
  weights->nonzero = nonzero;
  for (int64_t m = 0, bit = 0; m < outputs; ++m)
    for (int64_t i = 0; i < weights->inputs; ++i, ++bit)
      nonzero[bit / 8] |= (uint8_t)(is_nonzero(weights, m, i) << (bit % 8));
  return NULL;
}

/* Links operand 0 when its channels are where the product reads them; groups need them, to leave out whole
 * ones. */
static o3_status_t finish_product(o3_channels_t *self, o3_channel_relation_t *relation, int from_axis,
                                  int to_axis, bool *related) {
  bool grouped = relation->weights.groups > 1;
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  relation->kind = O3_CHANNELS_PRODUCT;
  O3_TRY(room_for_links(self, relation));
  if (!from && grouped) O3_TRY(o3_channel_axis_add(self, operand(relation, 0), from_axis, true, &from));
  bool fits =
      from && from->axis == from_axis && from->count == relation->weights.groups * relation->weights.inputs;
  if (grouped && !fits) return NULL;
  O3_TRY(o3_channel_axis_add(self, result(relation), to_axis, false, &relation->to));
  if (!relation->to) return NULL;
  if (fits) add_link(relation, 0, from, 0, 1);
  *related = true;
  return find_nonzero(self, &relation->weights);
}

static bool is_padded(MlirOperation op) {
  int64_t pads[2 * O3_IR_MAX_RANK];
  int count = o3_op_ints(op, "pads", pads, 2 * O3_IR_MAX_RANK);
  for (int i = 0; i < count; ++i)
    if (pads[i] != 0) return true;
  return false;
}

static o3_status_t relate_conv(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  MlirType type = operand_type(relation, 1);
  bool biased = mlirOperationGetNumOperands(relation->op) > 2;
  o3_channel_weights_t *weights = &relation->weights;
  if (!is_f32(result(relation)) || !is_f32(operand(relation, 0))) return NULL;
  weights->w = o3_channel_constant(self, operand(relation, 1));
  weights->b = biased ? o3_channel_constant(self, operand(relation, 2)) : NULL;
  if (!weights->w || (biased && !weights->b)) return NULL;
  weights->groups = o3_op_int(relation->op, "group", 1);
  weights->outputs = o3_type_dim(type, 0) / weights->groups;
  weights->inputs = o3_type_dim(type, 1);
  weights->positions = 1;
  for (int i = 2; i < o3_type_rank(type); ++i) weights->positions *= o3_type_dim(type, i);
  weights->position_stride = 1;
  weights->input_stride = weights->positions;
  weights->output_stride = weights->positions * weights->inputs;
  weights->padded = is_padded(relation->op);
  return finish_product(self, relation, 1, 1, related);
}

static o3_status_t relate_matmul(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  MlirType type = operand_type(relation, 1);
  int rank = o3_type_rank(operand_type(relation, 0));
  if (!is_f32(result(relation)) || !is_f32(operand(relation, 0)) || o3_type_rank(type) != 2) return NULL;
  const float *w = o3_channel_constant(self, operand(relation, 1));
  if (!w) return NULL;
  relation->weights = (o3_channel_weights_t){.w = w,
                                             .groups = 1,
                                             .inputs = o3_type_dim(type, 0),
                                             .outputs = o3_type_dim(type, 1),
                                             .positions = 1,
                                             .output_stride = 1,
                                             .input_stride = o3_type_dim(type, 1)};
  return finish_product(self, relation, rank - 1, rank - 1, related);
}

/* ---- Elementwise ---- */

/* Where dimension |axis| of the result is in an operand that broadcasts to it; negative when it is not there.
 */
static int aligned_axis(const o3_channel_relation_t *relation, int index, int axis) {
  return axis -
         (o3_type_rank(mlirValueGetType(result(relation))) - o3_type_rank(operand_type(relation, index)));
}

static bool is_constant(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "o3.constant");
}

/* The first tracked operand says which dimension the channels are. */
static int find_axis(const o3_channels_t *self, const o3_channel_relation_t *relation) {
  int rank = o3_type_rank(mlirValueGetType(result(relation)));
  for (int i = 0; i < (int)mlirOperationGetNumOperands(relation->op); ++i) {
    const o3_channel_axis_t *axis = o3_channels_of(self, operand(relation, i));
    if (axis) return axis->axis + rank - o3_type_rank(operand_type(relation, i));
  }
  return -1;
}

/* An operand with one channel is for all; a constant is cut as needed; others are tracked, and stay as they
 * are if they were not tracked before. */
static o3_status_t link_operand(o3_channels_t *self, o3_channel_relation_t *relation, int index, bool *fits) {
  int axis = aligned_axis(relation, index, relation->to->axis);
  const o3_channel_axis_t *from;
  MlirValue value = operand(relation, index);
  *fits = true;
  if (axis < 0 || o3_type_dim(operand_type(relation, index), axis) == 1 || is_constant(value)) return NULL;
  O3_TRY(o3_channel_axis_add(self, value, axis, true, &from));
  *fits = from && from->count == relation->to->count;
  if (*fits) add_link(relation, index, from, 0, 1);
  return NULL;
}

static o3_status_t relate_elementwise(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  int axis = find_axis(self, relation);
  if (axis < 0 || o3_type_dim(mlirValueGetType(result(relation)), axis) == 1) return NULL;
  relation->elementwise = true;
  O3_TRY(room_for_links(self, relation));
  O3_TRY(o3_channel_axis_add(self, result(relation), axis, false, &relation->to));
  *related = relation->to != NULL;
  for (int i = 0; *related && i < (int)mlirOperationGetNumOperands(relation->op); ++i)
    O3_TRY(link_operand(self, relation, i, related));
  return NULL;
}

/* ---- One operand ---- */

static o3_status_t relate_window(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  return from && from->axis == 1 ? relate_first(self, relation, 1, 1, related) : NULL;
}

static o3_status_t relate_reduce(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  int64_t axes[O3_IR_MAX_RANK];
  int count = o3_op_ints(relation->op, "axes", axes, O3_IR_MAX_RANK), before = 0;
  if (!from) return NULL;
  for (int i = 0; i < count; ++i) {
    if (axes[i] == from->axis) return NULL;
    before += axes[i] < from->axis;
  }
  int axis = from->axis - (o3_op_bool(relation->op, "keepdims", false) ? 0 : before);
  return relate_first(self, relation, axis, 1, related);
}

static o3_status_t relate_transpose(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  int64_t perm[O3_IR_MAX_RANK];
  int rank = o3_op_ints(relation->op, "perm", perm, O3_IR_MAX_RANK);
  for (int i = 0; from && i < rank; ++i)
    if (perm[i] == from->axis) return relate_first(self, relation, i, 1, related);
  return NULL;
}

static bool shape_of(MlirValue value, o3_shape_t *shape) {
  MlirType type = mlirValueGetType(value);
  if (o3_type_is_static(type)) {
    o3_shape_from_type(type, shape);
    return true;
  }
  MlirAttribute shapes = mlirValueIsAOpResult(value) ? o3_op_attr(mlirOpResultGetOwner(value), "o3.shape")
                                                     : mlirAttributeGetNull();
  if (mlirAttributeIsNull(shapes)) return false;
  o3_shape_from_attr(mlirArrayAttrGetElement(shapes, 0), shape);
  return true;
}

static bool same_product(MlirContext context, const o3_shape_t *a, int a_first, int a_last,
                         const o3_shape_t *b, int b_first, int b_last) {
  return o3_expr_equal(o3_shape_product(context, a, a_first, a_last),
                       o3_shape_product(context, b, b_first, b_last));
}

/* The channels may take the dimensions behind them in: N C 7 7 to N C*49. */
static o3_status_t relate_reshape(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  o3_shape_t a, b;
  MlirContext context = mlirOperationGetContext(relation->op);
  if (!from || !shape_of(operand(relation, 0), &a) || !shape_of(result(relation), &b)) return NULL;
  for (int j = 0; j < b.rank; ++j) {
    int64_t size;
    if (!same_product(context, &a, 0, from->axis, &b, 0, j)) continue;
    if (!o3_expr_is_const(b.dims[j], &size) || size < from->count || size % from->count) continue;
    o3_shape_t rest = b;
    rest.dims[j] = o3_expr_const(context, size / from->count);
    if (same_product(context, &a, from->axis + 1, a.rank, &rest, j, rest.rank))
      return relate_first(self, relation, j, size / from->count, related);
  }
  return NULL;
}

static o3_status_t relate_pad(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  o3_shape_t lows, highs;
  if (!from) return NULL;
  o3_shape_from_attr(o3_op_attr(relation->op, "lows"), &lows);
  o3_shape_from_attr(o3_op_attr(relation->op, "highs"), &highs);
  bool outside =
      o3_expr_equals_const(lows.dims[from->axis], 0) && o3_expr_equals_const(highs.dims[from->axis], 0);
  return outside ? relate_first(self, relation, from->axis, 1, related) : NULL;
}

static o3_status_t relate_resize(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  const o3_channel_axis_t *from = o3_channels_of(self, operand(relation, 0));
  int64_t axes[O3_IR_MAX_RANK];
  int count = o3_op_ints(relation->op, "axes", axes, O3_IR_MAX_RANK);
  if (!from || mlirOperationGetNumOperands(relation->op) > 2) return NULL; /* a region of interest */
  for (int i = 0; i < count; ++i)
    if (axes[i] == from->axis) return NULL;
  return relate_first(self, relation, from->axis, 1, related);
}

/* ---- Concatenation ---- */

static o3_status_t relate_concat(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  int axis = find_axis(self, relation);
  int64_t offset = 0;
  if (axis < 0) return NULL;
  relation->joins = o3_op_int(relation->op, "dim", -1) == axis;
  O3_TRY(room_for_links(self, relation));
  O3_TRY(o3_channel_axis_add(self, result(relation), axis, false, &relation->to));
  *related = relation->to != NULL;
  for (int i = 0; *related && i < (int)mlirOperationGetNumOperands(relation->op); ++i) {
    const o3_channel_axis_t *from;
    O3_TRY(o3_channel_axis_add(self, operand(relation, i), axis, true, &from));
    *related = from != NULL;
    if (!from) return NULL;
    add_link(relation, i, from, offset, 1);
    if (relation->joins) offset += from->count;
  }
  return NULL;
}

/* ---- The table ---- */

static const struct {
  const char *op;
  relate_fn_t relate;
} RULES[] = {
#define O3_CHANNEL_RULE(op, relation, fact) {op, relate_##relation},
#include "analysis/channel_rules.def"
#undef O3_CHANNEL_RULE
};

int o3_channel_rule_find(MlirOperation op) {
  for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); ++i)
    if (o3_op_is(op, RULES[i].op)) return (int)i;
  return -1;
}

o3_status_t o3_channel_relate(o3_channels_t *self, o3_channel_relation_t *relation, bool *related) {
  *related = false;
  return RULES[relation->rule].relate(self, relation, related);
}
