/* widen-precision: models in f16 and bf16 are computed in f32, on machines whose products of halves are no
 * faster.
 *
 *     %y = "o3.conv"(%x, %w) : f16         %y = "o3.conv"(cast %x, cast %w) : f32
 *     %z = "o3.exp"(%y) : f16        =>    %z = "o3.exp"(%y) : f32, cast %z : f16
 *
 * Needs: a normalized module. Guarantees: products and arithmetic (precision_ops.def) work on f32 and hand
 * f32 on to each other, through ops that move data too, without rounding in between. Inputs and results of
 * the model keep their types, so do what a loop's body computes, what is only moved (a table of embeddings),
 * and Casts that the model itself has round. Where numbers are told apart they are rounded first: of two
 * products that are equal as halves neither is the larger. Weights are widened when constants are folded.
 */
#include "rewrite/passes.h"
#include "rewrite/precision_keep.h"
#include "rewrite/rewrite_ir.h"

typedef struct widening {
  o3_ptr_map_t *widened; /* MlirValue.ptr of a half -> of the same in f32 */
  MlirType wide;
} widening_t;

static bool is_half(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  if (!mlirTypeIsARankedTensor(type)) return false;
  MlirType element = o3_type_element(type);
  return mlirTypeIsAF16(element) || mlirTypeIsABF16(element);
}

static o3_status_t note(widening_t *self, MlirValue half, MlirValue wide) {
  bool ok = o3_ptr_map_put(self->widened, half.ptr, (void *)(uintptr_t)wide.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* |value| in f32 for |user|; it is cast where it comes from, once for all. */
static o3_status_t widen(widening_t *self, MlirOperation user, MlirValue value, MlirValue *result) {
  const void *known = o3_ptr_map_get(self->widened, value.ptr);
  if (known) {
    *result = (MlirValue){known};
    return NULL;
  }
  MlirOperation def = o3_value_def(value);
  bool argument = mlirOperationIsNull(def);
  o3_builder_t b = argument ? o3_builder_before(mlirBlockGetFirstOperation(mlirBlockArgumentGetOwner(value)))
                            : o3_builder_after(def);
  if (argument) b.location = mlirOperationGetLocation(user);
  *result = o3_value_cast(&b, value, self->wide);
  return note(self, value, *result);
}

/* Computes |op| in f32; who is not widened itself reads the rounded result. */
static o3_status_t widen_op(widening_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i), wide;
    if (!is_half(operand)) continue;
    O3_TRY(widen(self, op, operand, &wide));
    mlirOperationSetOperand(op, i, wide);
  }
  MlirValue result = mlirOperationGetResult(op, 0);
  MlirType half = mlirValueGetType(result);
  mlirValueSetType(result, o3_type_with_element(half, self->wide));
  o3_builder_t b = o3_builder_after(op);
  MlirValue rounded = o3_value_cast(&b, result, o3_type_element(half));
  o3_value_replace_except(result, rounded, o3_value_def(rounded));
  return note(self, rounded, result);
}

/* Whether |op| moves only what is there in f32, or constant. */
static bool moves_widened(const widening_t *self, MlirOperation op) {
  bool any = false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i);
    if (!is_half(operand)) continue;
    MlirOperation def = o3_value_def(operand);
    bool known = o3_ptr_map_get(self->widened, operand.ptr) != NULL;
    any |= known;
    if (!known && (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant"))) return false;
  }
  return any;
}

static bool is_arithmetic(MlirOperation op) {
  static const char *const NAMES[] = {
#define O3_WIDENED(name)        name,
#define O3_NARROW_PRODUCT(name) name,
#include "rewrite/precision_ops.def"
#undef O3_WIDENED
#undef O3_NARROW_PRODUCT
  };
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i)
    if (o3_op_is(op, NAMES[i])) return true;
  return false;
}

static bool is_widened(const widening_t *self, MlirOperation op) {
  if (mlirOperationGetNumResults(op) != 1 || !is_half(mlirOperationGetResult(op, 0))) return false;
  return is_arithmetic(op) || (o3_precision_kind(op) == O3_PRECISION_MOVE && moves_widened(self, op));
}

/* A node that computes in f32 and gives a half: who reads it has what was computed. */
static bool gives_half(const widening_t *self, MlirOperation op) {
  if (!o3_op_is(op, "o3.cast") || !is_half(mlirOperationGetResult(op, 0)) || o3_op_bool(op, "rounds", false))
    return false;
  return mlirTypeEqual(o3_type_element(mlirValueGetType(mlirOperationGetOperand(op, 0))), self->wide);
}

/* A cast of a half to f32 that is there already. */
static bool is_needless(const widening_t *self, MlirOperation op, MlirValue *wide) {
  if (!o3_op_is(op, "o3.cast") || !is_half(mlirOperationGetOperand(op, 0))) return false;
  *wide = (MlirValue){o3_ptr_map_get(self->widened, mlirOperationGetOperand(op, 0).ptr)};
  return !mlirValueIsNull(*wide) &&
         mlirTypeEqual(mlirValueGetType(*wide), mlirValueGetType(mlirOperationGetResult(op, 0)));
}

o3_status_t o3_rewrite_widen_precision(o3_pass_env_t *env, MlirModule module) {
  const o3_kernel_support_t *kernels = env->machine->kernels;
  MlirOperation main = o3_module_func(module, "main");
  if (!kernels || !kernels->widens_halves) return NULL;
  if (mlirOperationIsNull(main))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no function @main");
  widening_t self = {.widened = o3_ptr_map_create(env->arena), .wide = mlirF32TypeGet(env->context)};
  O3_TRY_ALLOC(self.widened);
  MlirOperation op = mlirBlockGetFirstOperation(o3_func_body(main)), next;
  for (; !mlirOperationIsNull(op); op = next) {
    MlirValue wide;
    next = mlirOperationGetNextInBlock(op);
    if (is_widened(&self, op))
      O3_TRY(widen_op(&self, op));
    else if (gives_half(&self, op))
      O3_TRY(note(&self, mlirOperationGetResult(op, 0), mlirOperationGetOperand(op, 0)));
    else if (is_needless(&self, op, &wide))
      o3_op_replace(op, 1, &wide);
  }
  return NULL;
}
