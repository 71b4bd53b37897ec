/* Factors and sums per output channel move into the convolution before them.
 *
 * BatchNormalization normalizes into a product and a sum with constants; both disappear here.
 * Needs: a normalized module. Guarantees: the result of a convolution with constant weights is not multiplied
 * by, added to or reduced by a constant per channel, unless something else reads it too.
 *
 *     %y = "o3.conv"(%x, %w)             %w2 = "o3.mul"(%w, %s')     (constants: folded later)
 *     %z = "o3.mul"(%y, %s)        =>    %z = "o3.conv"(%x, %w2)
 */
#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

/* How many ops a computation from constants may be deep: BatchNormalization's factor and sum are five. */
enum { MAX_CONSTANT_DEPTH = 12 };

/* A constant, or what will be folded to one: long ones are not computed before layouts are chosen. */
static bool is_constant(MlirValue value, int depth) {
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || depth > MAX_CONSTANT_DEPTH) return false;
  if (o3_op_is(def, "o3.constant")) return true;
  if (!o3_op_is_pure(def) || mlirOperationGetNumOperands(def) == 0) return false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(def); ++i) {
    if (!is_constant(mlirOperationGetOperand(def, i), depth + 1)) return false;
  }
  return true;
}

/* The constant |value| holds one number for each of |channels| in dimension 1 of a tensor of rank |rank|, or
 * a single number. */
static bool is_per_channel(MlirValue value, int rank, int64_t channels) {
  if (!is_constant(value, 0)) return false;
  MlirType type = mlirValueGetType(value);
  int own = o3_type_rank(type), axis = 1 - (rank - own);
  if (own > rank) return false;
  for (int i = 0; i < own; ++i) {
    int64_t size = o3_type_dim(type, i);
    if (size != 1 && !(i == axis && size == channels)) return false;
  }
  return true;
}

typedef struct absorb {
  MlirOperation conv, user;
  MlirValue constant; /* per channel */
  o3_builder_t builder;
  int64_t channels;
  int axis; /* of the channels in the weights */
  MlirType element;
} absorb_t;

static MlirValue binary(absorb_t *self, const char *name, MlirValue a, MlirValue b) {
  return o3_build1(&self->builder, name, mlirValueGetType(a), O3_VALUES(a, b));
}

/* The constant as a tensor of |rank| with M elements along |axis|, or one when it is a single number. */
static MlirValue channel_vector(absorb_t *self, int rank, int axis) {
  int64_t sizes[O3_IR_MAX_RANK];
  for (int i = 0; i < rank; ++i) sizes[i] = 1;
  if (o3_type_count(mlirValueGetType(self->constant)) != 1) sizes[axis] = self->channels;
  MlirType type = o3_tensor_type(rank, sizes, self->element);
  return o3_build1(&self->builder, "o3.reshape", type, O3_VALUES(self->constant));
}

static MlirValue conv_bias(const absorb_t *self) {
  return mlirOperationGetNumOperands(self->conv) > 2 ? mlirOperationGetOperand(self->conv, 2)
                                                     : (MlirValue){0};
}

static MlirValue full_bias(absorb_t *self) {
  MlirType type = o3_tensor_type(1, &self->channels, self->element);
  return o3_build1(&self->builder, "o3.broadcast", type, O3_VALUES(channel_vector(self, 1, 0)));
}

/* The new weights and bias for conv(x, w, b) <op> constant. */
static void absorb(absorb_t *self, MlirValue *w, MlirValue *b) {
  MlirValue bias = conv_bias(self);
  *w = mlirOperationGetOperand(self->conv, 1);
  *b = bias;
  if (o3_op_is(self->user, "o3.mul")) {
    *w = binary(self, "o3.mul", *w, channel_vector(self, o3_type_rank(mlirValueGetType(*w)), self->axis));
    if (!mlirValueIsNull(bias)) *b = binary(self, "o3.mul", bias, channel_vector(self, 1, 0));
  } else if (o3_op_is(self->user, "o3.add")) {
    *b = mlirValueIsNull(bias) ? full_bias(self) : binary(self, "o3.add", bias, channel_vector(self, 1, 0));
  } else {
    MlirValue negative = o3_build_unary(&self->builder, "o3.neg", full_bias(self));
    *b = mlirValueIsNull(bias) ? negative : binary(self, "o3.add", bias, negative);
  }
}

enum { MAX_CONV_ATTRS = 16 };

static MlirOperation rebuild_conv(absorb_t *self, MlirValue w, MlirValue b) {
  o3_attr_t attrs[MAX_CONV_ATTRS];
  int count = (int)mlirOperationGetNumAttributes(self->conv);
  MlirValue operands[3] = {mlirOperationGetOperand(self->conv, 0), w, b};
  MlirType type = mlirValueGetType(mlirOperationGetResult(self->conv, 0));
  for (int i = 0; i < count; ++i) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(self->conv, i);
    attrs[i] = (o3_attr_t){mlirIdentifierStr(attr.name).data, attr.attribute};
  }
  o3_op_spec_t spec = {.name = self->axis ? "o3.conv_transpose" : "o3.conv",
                       .num_operands = mlirValueIsNull(b) ? 2 : 3,
                       .operands = operands,
                       .num_results = 1,
                       .results = &type,
                       .num_attrs = count,
                       .attrs = attrs};
  return o3_build(&self->builder, &spec);
}

/* The user that can be absorbed, with its constant operand. A subtraction from a constant is none. */
static bool find_user(absorb_t *self) {
  MlirValue y = mlirOperationGetResult(self->conv, 0);
  self->user = o3_value_single_user(y);
  if (mlirOperationIsNull(self->user)) return false;
  bool commutes = o3_op_is(self->user, "o3.mul") || o3_op_is(self->user, "o3.add");
  if (!commutes && !o3_op_is(self->user, "o3.sub")) return false;
  bool first = mlirValueEqual(mlirOperationGetOperand(self->user, 0), y);
  if (!first && !commutes) return false;
  self->constant = mlirOperationGetOperand(self->user, first ? 1 : 0);
  MlirType type = mlirValueGetType(y), w_type = mlirValueGetType(mlirOperationGetOperand(self->conv, 1));
  self->channels = o3_type_dim(w_type, self->axis);
  self->element = o3_type_element(type);
  bool same_types = mlirTypeEqual(type, mlirValueGetType(mlirOperationGetResult(self->user, 0))) &&
                    mlirTypeEqual(self->element, o3_type_element(w_type)) && o3_type_is_float(self->element);
  return same_types && is_per_channel(self->constant, o3_type_rank(type), self->channels);
}

static bool has_constant_weights(MlirOperation conv) {
  for (intptr_t i = 1; i < mlirOperationGetNumOperands(conv); ++i) {
    MlirOperation def = o3_value_def(mlirOperationGetOperand(conv, i));
    if (mlirOperationIsNull(def) || !o3_op_is_pure(def)) return false;
    if (!o3_type_is_static(mlirValueGetType(mlirOperationGetOperand(conv, i)))) return false;
  }
  return true;
}

/* The constant stands before its user, perhaps behind the convolution: the new convolution takes the user's
 * place. */
static MlirOperation absorb_one(MlirOperation conv) {
  absorb_t self = {.conv = conv, .axis = o3_op_is(conv, "o3.conv_transpose")};
  MlirValue w, b;
  if (mlirOperationGetNumAttributes(conv) > MAX_CONV_ATTRS) return (MlirOperation){0};
  if (!has_constant_weights(conv) || !find_user(&self)) return (MlirOperation){0};
  self.builder = o3_builder_before(self.user);
  self.builder.location = mlirOperationGetLocation(conv);
  absorb(&self, &w, &b);
  MlirOperation made = rebuild_conv(&self, w, b);
  MlirValue result = mlirOperationGetResult(made, 0);
  o3_op_replace(self.user, 1, &result);
  mlirOperationDestroy(conv);
  return made;
}

/* The weights of a grouped transposed convolution have the outputs of one group only. */
static bool takes_affine(MlirOperation op) {
  return o3_op_is(op, "o3.conv") || (o3_op_is(op, "o3.conv_transpose") && o3_op_int(op, "group", 1) == 1);
}

o3_status_t o3_rewrite_absorb_affine(o3_pass_env_t *env, MlirModule module) {
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  O3_TRY(o3_collect_ops(mlirModuleGetOperation(module), &ops));
  o3_ptr_vec_t convs = o3_ptr_vec(env->arena);
  for (size_t i = 0; i < ops.count; ++i) {
    if (takes_affine((MlirOperation){.ptr = ops.items[i]}) && !o3_ptr_vec_push(&convs, ops.items[i]))
      return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  for (size_t i = 0; i < convs.count; ++i) {
    MlirOperation conv = {.ptr = convs.items[i]};
    while (!mlirOperationIsNull(conv)) conv = absorb_one(conv);
  }
  return NULL;
}
