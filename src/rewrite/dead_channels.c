/* Channels that no result depends on, or that hold the same number whatever the inputs are, disappear.
 *
 * The analysis (analysis/channels.h) says which channels stay. Here products lose the rows and columns of the
 * others, the numbers that those held go into the bias, and everything between the products gets smaller
 * types. Needs: a normalized module with constants folded. Guarantees: the same results, up to the rounding
 * of sums; names and types of inputs and outputs stay.
 *
 *     %y = "o3.conv"(%x, %w, %b) : ... -> tensor<1x64x56x56xf32>     (16 rows of %w are zero)
 *     %z = "o3.max"(%y, %zero)
 *     %u = "o3.conv"(%z, %v)
 * =>  %y = "o3.conv"(%x, %w', %b') : ... -> tensor<1x48x56x56xf32>
 *     %z = "o3.max"(%y, %zero)
 *     %u = "o3.conv"(%z, %v', %c)     (%v' without those columns, %c: what max(bias, 0) of them comes to)
 */
#include <string.h>

#include "analysis/channels.h"
#include "analysis/shape.h"
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

enum { MAX_OPERANDS = 256, MAX_ATTRS = 32 };

typedef struct shrink {
  o3_pass_env_t *env;
  const o3_channels_t *channels;
  o3_ptr_map_t *made; /* old value -> its smaller one */
  o3_ptr_vec_t dead;  /* ops that were replaced */
  o3_builder_t builder;
} shrink_t;

/* ---- Values ---- */

static MlirValue current(const shrink_t *self, MlirValue value) {
  void *made = o3_ptr_map_get(self->made, value.ptr);
  return made ? (MlirValue){.ptr = made} : value;
}

static bool is_smaller(const shrink_t *self, const o3_channel_axis_t *axis) {
  return axis && o3_channels_count_kept(self->channels, axis) < axis->count;
}

static MlirType with_size(MlirType type, int axis, int64_t size) {
  int64_t sizes[O3_IR_MAX_RANK];
  int rank = o3_type_rank(type);
  for (int i = 0; i < rank; ++i) sizes[i] = i == axis ? size : o3_type_dim(type, i);
  return o3_tensor_type(rank, sizes, o3_type_element(type));
}

static o3_status_t constant(shrink_t *self, MlirType type, const void *data, size_t bytes, MlirValue *made) {
  MlirAttribute value;
  O3_TRY(o3_weights_add(self->env->weights, "channels", type, data, bytes, &value));
  *made = o3_build1_attrs(&self->builder, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", value}));
  return NULL;
}

/* The constant with those of its |axis| that |like| keeps. */
static o3_status_t cut_constant(shrink_t *self, MlirValue value, int axis, const o3_channel_axis_t *like,
                                MlirValue *made) {
  MlirType type = mlirValueGetType(value);
  int64_t kept = o3_channels_count_kept(self->channels, like), inner = 1, outer = 1;
  for (int i = 0; i < o3_type_rank(type); ++i)
    *(i < axis ? &outer : &inner) *= i == axis ? 1 : o3_type_dim(type, i);
  size_t bytes, piece = (size_t)inner * (size_t)o3_type_bits(o3_type_element(type)) / 8,
                total = (size_t)(outer * kept) * piece;
  const uint8_t *from = o3_weights_data(self->env->weights, o3_op_attr(o3_value_def(value), "value"), &bytes);
  uint8_t *data = o3_weights_alloc(self->env->weights, total + 1), *to = data;
  O3_TRY_ALLOC(from && data);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < like->count; ++c, from += piece) {
      if (!o3_channels_kept(self->channels, like, c)) continue;
      memcpy(to, from, piece);
      to += piece;
    }
  return constant(self, with_size(type, axis, kept), data, total, made);
}

/* ---- Ops ---- */

/* The attributes, with the new size in o3.shape. */
static int copy_attrs(const shrink_t *self, MlirOperation op, const o3_channel_axis_t *to, o3_attr_t *attrs) {
  int count = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op) && count < MAX_ATTRS; ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    MlirStringRef name = mlirIdentifierStr(attr.name);
    MlirAttribute value = attr.attribute;
    if (o3_str_equal(name, "o3.shape")) {
      MlirAttribute old = mlirArrayAttrGetElement(value, 0);
      o3_shape_t shape;
      o3_shape_from_attr(old, &shape);
      shape.dims[to->axis] = o3_expr_const(self->env->context, o3_channels_count_kept(self->channels, to));
      int symbols = (int)mlirAffineMapGetNumSymbols(mlirAffineMapAttrGetValue(old));
      MlirAttribute map = o3_shape_attr(self->env->context, &shape, symbols);
      value = mlirArrayAttrGet(self->env->context, 1, &map);
    }
    attrs[count++] = (o3_attr_t){name.data, value};
  }
  return count;
}

static void set_attr(o3_attr_t *attrs, int count, const char *name, MlirAttribute value) {
  for (int i = 0; i < count; ++i)
    if (!strcmp(attrs[i].name, name)) attrs[i].value = value;
}

/* Readers of a value whose type stays read the new one at once, others when they are rebuilt. */
static o3_status_t put_in_place(shrink_t *self, MlirOperation op, MlirValue made) {
  MlirValue old = mlirOperationGetResult(op, 0);
  if (mlirTypeEqual(mlirValueGetType(old), mlirValueGetType(made)))
    mlirValueReplaceAllUsesOfWith(old, made);
  else
    O3_TRY_ALLOC(o3_ptr_map_put(self->made, old.ptr, (void *)(uintptr_t)made.ptr));
  O3_TRY_ALLOC(o3_ptr_vec_push(&self->dead, op.ptr));
  return NULL;
}

static MlirType result_type(const shrink_t *self, const o3_channel_axis_t *to) {
  return with_size(mlirValueGetType(to->value), to->axis, o3_channels_count_kept(self->channels, to));
}

/* ---- Channel by channel ---- */

static o3_status_t map_operand(shrink_t *self, const o3_channel_relation_t *relation, int index,
                               MlirValue *made) {
  MlirValue value = mlirOperationGetOperand(relation->op, index);
  MlirType type = mlirValueGetType(value);
  MlirOperation def = o3_value_def(value);
  *made = current(self, value);
  if (!relation->elementwise || mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return NULL;
  int axis = relation->to->axis - (o3_type_rank(mlirValueGetType(relation->to->value)) - o3_type_rank(type));
  if (axis < 0 || o3_type_dim(type, axis) != relation->to->count || relation->to->count == 1) return NULL;
  return cut_constant(self, value, axis, relation->to, made);
}

static o3_status_t rebuild_map(shrink_t *self, const o3_channel_relation_t *relation) {
  MlirValue operands[MAX_OPERANDS];
  o3_attr_t attrs[MAX_ATTRS];
  int count = (int)mlirOperationGetNumOperands(relation->op);
  for (int i = 0; i < count; ++i) O3_TRY(map_operand(self, relation, i, &operands[i]));
  MlirType type = result_type(self, relation->to);
  int num_attrs = copy_attrs(self, relation->op, relation->to, attrs);
  MlirValue made =
      o3_build1_attrs(&self->builder, o3_op_name(relation->op).data, type, count, operands, num_attrs, attrs);
  return put_in_place(self, relation->op, made);
}

/* ---- Products ---- */

static const o3_channel_axis_t *source_of(const o3_channel_relation_t *relation) {
  return relation->num_links ? relation->links[0].from : NULL;
}

static bool input_kept(const shrink_t *self, const o3_channel_axis_t *from, int64_t channel) {
  return !from || o3_channels_kept(self->channels, from, channel);
}

/* Output m of all, input i of its group. */
static const float *weight_at(const o3_channel_weights_t *weights, int64_t m, int64_t i) {
  return weights->w + m * weights->output_stride + i * weights->input_stride;
}

/* What the inputs that are left out add to output |m|. One that is not known meets zeros, or an output that
 * nothing needs. */
static double lost_sum(const shrink_t *self, const o3_channel_relation_t *relation, int64_t m) {
  const o3_channel_weights_t *weights = &relation->weights;
  const o3_channel_axis_t *from = source_of(relation);
  int64_t first = m / weights->outputs * weights->inputs;
  double sum = 0;
  for (int64_t i = 0; i < weights->inputs; ++i) {
    float x;
    if (input_kept(self, from, first + i) || !o3_channels_known(self->channels, from, first + i, &x))
      continue;
    for (int64_t p = 0; p < weights->positions && x != 0; ++p)
      sum += (double)weight_at(weights, m, i)[p * weights->position_stride] * (double)x;
  }
  return sum;
}

typedef struct bias {
  float *data;
  int64_t count;
  bool any; /* one that is not zero, or there was a bias before */
} bias_t;

static o3_status_t make_bias(shrink_t *self, const o3_channel_relation_t *relation, bias_t *bias) {
  const float *old = relation->weights.b;
  bias->data = o3_weights_alloc(self->env->weights, (size_t)relation->to->count * sizeof(float));
  O3_TRY_ALLOC(bias->data);
  for (int64_t m = 0; m < relation->to->count; ++m) {
    if (!o3_channels_kept(self->channels, relation->to, m)) continue;
    float sum = (float)((old ? (double)old[m] : 0) + lost_sum(self, relation, m));
    bias->any |= old || sum != 0;
    bias->data[bias->count++] = sum;
  }
  return NULL;
}

/* The rows and columns that stay, in the order that the weights have: a convolution's outputs first, a
 * matrix's inputs. */
static o3_status_t cut_weights(shrink_t *self, const o3_channel_relation_t *relation, bool outputs_first,
                               MlirValue *made) {
  const o3_channel_weights_t *weights = &relation->weights;
  const o3_channel_axis_t *from = source_of(relation), *to = relation->to;
  MlirType type = mlirValueGetType(mlirOperationGetOperand(relation->op, 1));
  float *data = o3_weights_alloc(self->env->weights, (size_t)(o3_type_count(type) + 1) * sizeof(float)),
        *at = data;
  O3_TRY_ALLOC(data);
  int64_t outputs = to->count, count = outputs * weights->inputs, columns = 0;
  for (int64_t n = 0; n < count; ++n) {
    int64_t m = outputs_first ? n / weights->inputs : n % outputs,
            i = outputs_first ? n % weights->inputs : n / outputs;
    bool stays = o3_channels_kept(self->channels, to, m) &&
                 input_kept(self, from, m / weights->outputs * weights->inputs + i);
    for (int64_t p = 0; stays && p < weights->positions; ++p)
      *at++ = weight_at(weights, m, i)[p * weights->position_stride];
  }
  int64_t kept = o3_channels_count_kept(self->channels, to);
  columns = (at - data) / (kept * weights->positions);
  type = with_size(with_size(type, outputs_first ? 0 : 1, kept), outputs_first ? 1 : 0, columns);
  return constant(self, type, data, (size_t)(at - data) * sizeof(float), made);
}

static o3_status_t rebuild_conv(shrink_t *self, const o3_channel_relation_t *relation) {
  const o3_channel_weights_t *weights = &relation->weights;
  MlirValue operands[3] = {current(self, mlirOperationGetOperand(relation->op, 0))};
  o3_attr_t attrs[MAX_ATTRS];
  bias_t bias = {0};
  O3_TRY(cut_weights(self, relation, true, &operands[1]));
  O3_TRY(make_bias(self, relation, &bias));
  MlirType element = o3_type_element(mlirValueGetType(relation->to->value));
  if (bias.any)
    O3_TRY(constant(self, o3_tensor_type(1, &bias.count, element), bias.data,
                    (size_t)bias.count * sizeof(float), &operands[2]));
  int count = copy_attrs(self, relation->op, relation->to, attrs);
  if (weights->groups > 1)
    set_attr(attrs, count, "group", o3_attr_i64(self->env->context, bias.count / weights->outputs));
  MlirValue made = o3_build1_attrs(&self->builder, "o3.conv", result_type(self, relation->to),
                                   bias.any ? 3 : 2, operands, count, attrs);
  return put_in_place(self, relation->op, made);
}

static o3_status_t rebuild_matmul(shrink_t *self, const o3_channel_relation_t *relation) {
  MlirValue operands[2] = {current(self, mlirOperationGetOperand(relation->op, 0))}, row;
  o3_attr_t attrs[MAX_ATTRS];
  bias_t bias = {0};
  O3_TRY(cut_weights(self, relation, false, &operands[1]));
  O3_TRY(make_bias(self, relation, &bias));
  MlirType type = result_type(self, relation->to);
  int count = copy_attrs(self, relation->op, relation->to, attrs);
  MlirValue made = o3_build1_attrs(&self->builder, "o3.matmul", type, 2, operands, count, attrs);
  if (!bias.any) return put_in_place(self, relation->op, made);
  O3_TRY(constant(self, o3_tensor_type(1, &bias.count, o3_type_element(type)), bias.data,
                  (size_t)bias.count * sizeof(float), &row));
  const o3_attr_t shape = {"o3.shape", o3_op_attr(o3_value_def(made), "o3.shape")};
  return put_in_place(self, relation->op,
                      o3_build1_attrs(&self->builder, "o3.add", type, O3_VALUES(made, row), 1, &shape));
}

/* ---- The pass ---- */

static bool is_changed(const shrink_t *self, const o3_channel_relation_t *relation) {
  bool changed = is_smaller(self, relation->to);
  for (int i = 0; i < relation->num_links; ++i) changed |= is_smaller(self, relation->links[i].from);
  return changed;
}

static o3_status_t rebuild(shrink_t *self, const o3_channel_relation_t *relation) {
  MlirOperation op = relation->op;
  if (mlirOperationGetNumOperands(op) > MAX_OPERANDS || mlirOperationGetNumAttributes(op) > MAX_ATTRS)
    return o3_status_create(O3_STATUS_UNSUPPORTED,
                            "node '%.*s': %d operands and %d attributes, at most %d and %d are",
                            O3_STR_ARGS(o3_op_label(op)), (int)mlirOperationGetNumOperands(op),
                            (int)mlirOperationGetNumAttributes(op), MAX_OPERANDS, MAX_ATTRS);
  self->builder = o3_builder_before(op);
  if (relation->kind == O3_CHANNELS_MAP) return rebuild_map(self, relation);
  return o3_op_is(op, "o3.conv") ? rebuild_conv(self, relation) : rebuild_matmul(self, relation);
}

o3_status_t o3_rewrite_dead_channels(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main");
  if (mlirOperationIsNull(main))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no function @main");
  MlirBlock body = o3_func_body(main);
  o3_channels_t *channels;
  O3_TRY(o3_channels_analyse(env->arena, env->weights, body, &channels));
  shrink_t self = {.env = env,
                   .channels = channels,
                   .made = o3_ptr_map_create(env->arena),
                   .dead = o3_ptr_vec(env->arena)};
  O3_TRY_ALLOC(self.made);
  MlirOperation op = mlirBlockGetFirstOperation(body), next;
  for (; !mlirOperationIsNull(op); op = next) {
    next = mlirOperationGetNextInBlock(op);
    const o3_channel_relation_t *relation = o3_channels_relation(channels, op);
    if (relation && is_changed(&self, relation)) O3_TRY(rebuild(&self, relation));
  }
  for (size_t i = self.dead.count; i-- > 0;) mlirOperationDestroy((MlirOperation){.ptr = self.dead.items[i]});
  return NULL;
}
