/* Angles grow with a position, so they need all their bits: in fp16 the angle 1000.3 is 1000.5. Followed
 * backward from what needs them, as far as ops hand bits on. Large constants are followed forward. */
#include "rewrite/precision_keep.h"

#include <float.h>
#include <math.h>

typedef struct keeper {
  o3_pass_env_t *env;
  o3_ptr_map_t *kept;
  o3_ptr_map_t *positions; /* values that were asked about -> &YES or &NO */
  o3_ptr_vec_t pending;    /* kept ops whose operands are still to follow */
} keeper_t;

static const char YES, NO;

static const struct {
  const char *name;
  o3_precision_kind_t kind;
} KINDS[] = {
#define O3_NARROW_PRODUCT(name) {name, O3_PRECISION_PRODUCT},
#define O3_NARROW_MOVE(name)    {name, O3_PRECISION_MOVE},
#define O3_WIDE_CARRY(name)     {name, O3_PRECISION_CARRY},
#define O3_WIDE_EXACT(name)     {name, O3_PRECISION_EXACT},
#define O3_NEEDS_EXACT(name)    {name, O3_PRECISION_SENSITIVE},
#include "rewrite/precision_ops.def"
#undef O3_NARROW_PRODUCT
#undef O3_NARROW_MOVE
#undef O3_WIDE_CARRY
#undef O3_WIDE_EXACT
#undef O3_NEEDS_EXACT
};

/* Sums of windows may be beyond what their terms are. */
o3_precision_kind_t o3_precision_kind(MlirOperation op) {
  if (o3_op_bool(op, "sum", false)) return O3_PRECISION_OTHER;
  for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); ++i)
    if (o3_op_is(op, KINDS[i].name)) return KINDS[i].kind;
  return O3_PRECISION_OTHER;
}

/* The largest finite number of |narrow|, f16 or bf16. */
static double largest_of(MlirType narrow) { return mlirTypeIsAF16(narrow) ? 65504 : 0x1.FEp127; }

static bool is_f32(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return mlirTypeIsARankedTensor(type) && mlirTypeIsAF32(o3_type_element(type));
}

static bool is_kept(const keeper_t *self, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_ptr_map_get(self->kept, def.ptr);
}

static o3_status_t keep(keeper_t *self, MlirOperation op) {
  if (o3_ptr_map_get(self->kept, op.ptr)) return NULL;
  bool ok = o3_ptr_map_put(self->kept, op.ptr, op.ptr) && o3_ptr_vec_push(&self->pending, op.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* ---- Backward: what needs exact numbers ---- */

static bool hands_on(o3_precision_kind_t kind) {
  return kind == O3_PRECISION_MOVE || kind == O3_PRECISION_CARRY || kind == O3_PRECISION_EXACT;
}

static bool is_position(keeper_t *self, MlirValue value);

static bool find_position(keeper_t *self, MlirValue value) {
  MlirOperation def = o3_value_def(value);
  if (!is_f32(value)) return true;
  if (mlirOperationIsNull(def)) return false;
  o3_precision_kind_t kind = o3_precision_kind(def);
  bool all = hands_on(kind) || kind == O3_PRECISION_PRODUCT || o3_op_is(def, "o3.constant") ||
             o3_op_is(def, "o3.cast") || o3_op_is(def, "o3.iota") || o3_op_is(def, "o3.range");
  for (intptr_t i = 0; all && i < mlirOperationGetNumOperands(def); ++i)
    all = is_position(self, mlirOperationGetOperand(def, i));
  return all;
}

/* A failed put costs time alone. */
static bool is_position(keeper_t *self, MlirValue value) {
  const void *known = o3_ptr_map_get(self->positions, value.ptr);
  if (known) return known == &YES;
  bool found = find_position(self, value);
  (void)o3_ptr_map_put(self->positions, value.ptr, (void *)(uintptr_t)(found ? &YES : &NO));
  return found;
}

static bool makes_positions(keeper_t *self, MlirOperation op) {
  bool all = o3_precision_kind(op) == O3_PRECISION_PRODUCT;
  for (intptr_t i = 0; all && i < mlirOperationGetNumOperands(op); ++i)
    all = is_position(self, mlirOperationGetOperand(op, i));
  return all;
}

static o3_status_t keep_operands(keeper_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    MlirOperation def = o3_value_def(operand);
    if (mlirOperationIsNull(def) || !is_f32(operand)) continue;
    if (hands_on(o3_precision_kind(def)) || makes_positions(self, def)) O3_TRY(keep(self, def));
  }
  return NULL;
}

static bool becomes_integer(MlirOperation op) {
  return o3_op_is(op, "o3.cast") && is_f32(mlirOperationGetOperand(op, 0)) &&
         o3_type_is_integer(o3_type_element(mlirValueGetType(mlirOperationGetResult(op, 0))));
}

/* ---- Forward: what carries a large constant ---- */

static bool is_large(const keeper_t *self, MlirOperation constant, double largest) {
  size_t bytes;
  bool large = false;
  if (!is_f32(mlirOperationGetResult(constant, 0))) return false;
  const float *data = o3_weights_data(self->env->weights, o3_op_attr(constant, "value"), &bytes);
  for (size_t i = 0; data && i < bytes / sizeof(float); ++i)
    large |= isfinite(data[i]) && fabsf(data[i]) > (float)largest;
  return large;
}

static bool carries_large(const keeper_t *self, MlirOperation op, double largest) {
  o3_precision_kind_t kind = o3_precision_kind(op);
  if (kind != O3_PRECISION_MOVE && kind != O3_PRECISION_CARRY) return false;
  bool large = false;
  for (intptr_t i = 0; !large && i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    MlirOperation def = o3_value_def(operand);
    if (mlirOperationIsNull(def) || !is_f32(operand)) continue;
    large = o3_op_is(def, "o3.constant") ? is_large(self, def, largest) : is_kept(self, operand);
  }
  return large;
}

o3_status_t o3_precision_find_kept(o3_pass_env_t *env, const o3_ptr_vec_t *ops, MlirType narrow,
                                   o3_ptr_map_t **kept) {
  keeper_t self = {.env = env,
                   .kept = o3_ptr_map_create(env->arena),
                   .positions = o3_ptr_map_create(env->arena),
                   .pending = o3_ptr_vec(env->arena)};
  O3_TRY_ALLOC(self.kept);
  O3_TRY_ALLOC(self.positions);
  double largest = largest_of(narrow);
  for (size_t i = 0; i < ops->count; ++i) {
    MlirOperation op = {ops->items[i]};
    if (carries_large(&self, op, largest)) O3_TRY(keep(&self, op));
  }
  self.pending.count = 0; /* these are followed forward alone */
  for (size_t i = 0; i < ops->count; ++i) {
    MlirOperation op = {ops->items[i]};
    if (o3_precision_kind(op) == O3_PRECISION_SENSITIVE || becomes_integer(op))
      O3_TRY(keep_operands(&self, op));
  }
  while (self.pending.count) {
    MlirOperation op = {self.pending.items[--self.pending.count]};
    O3_TRY(keep_operands(&self, op));
  }
  *kept = self.kept;
  return NULL;
}
