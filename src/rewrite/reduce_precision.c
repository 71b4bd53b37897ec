/* reduce-precision: an fp32 model in fp16 or bf16, as far as that is harmless.
 *
 * Needs: a normalized module. Guarantees: products, windows of maxima and ops that move data
 * (precision_ops.def) work on the narrow type; all others compute in f32: normalizations, softmax,
 * reductions, exponentials, elementwise ops. What several ops read is kept in the narrow type, and so is what
 * a normalization reads of a product (a kernel ends between them), but for what precision_keep.h names.
 * Inputs and results of the model keep theirs.
 *
 *     %y = "o3.conv"(%x, %w) : f32         %h = "o3.conv"(cast %x, cast %w) : f16, %y = "o3.cast"(%h) : f32
 *     %z = "o3.exp"(%y) : f32        =>    %z = "o3.exp"(%y) : f32
 *
 * Casts between two narrow ops cancel; those around elementwise ops become part of the kernels that read and
 * write, so memory holds narrow numbers and arithmetic is done in f32. Casts of constants are folded.
 */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "rewrite/passes.h"
#include "rewrite/precision_keep.h"
#include "rewrite/rewrite_ir.h"
#include "tensorio/half.h"

typedef struct precision {
  o3_pass_env_t *env;
  MlirType narrow;
  o3_ptr_map_t *narrowed; /* MlirValue.ptr of f32 -> of the same in the narrow type */
  o3_ptr_map_t *products; /* MlirValue.ptr of f32: products, and what elementwise ops make of them */
  int num_narrow, num_wide;
  double worst; /* largest error of a weight, relative to the largest of its tensor */
} precision_t;

static bool is_f32(MlirValue value) {
  MlirType type = mlirValueGetType(value);
  return mlirTypeIsARankedTensor(type) && mlirTypeIsAF32(o3_type_element(type));
}

/* ---- Weights ---- */

static float rounded(const precision_t *self, float value) {
  if (mlirTypeIsAF16(self->narrow)) return o3_half_to_float(o3_half_from_float(value));
  return o3_bfloat_to_float(o3_bfloat_from_float(value));
}

/* Notes how far the numbers of a constant move, and one that does not fit. */
static o3_status_t measure(precision_t *self, MlirOperation constant) {
  size_t bytes;
  const float *data = o3_weights_data(self->env->weights, o3_op_attr(constant, "value"), &bytes);
  O3_TRY_ALLOC(data);
  double largest = 0, error = 0;
  for (size_t i = 0; i < bytes / sizeof(float); ++i) {
    float near = rounded(self, data[i]);
    if (isfinite(data[i]) && !isfinite(near))
      return o3_status_create(O3_STATUS_UNSUPPORTED, "constant '%.*s' holds %g, which %s",
                              O3_STR_ARGS(o3_op_label(constant)), (double)data[i],
                              mlirTypeIsAF16(self->narrow) ? "float16 does not (65504 at most): try bf16"
                                                           : "bfloat16 rounds to infinity");
    if (!isfinite(data[i])) continue;
    largest = fmax(largest, fabs((double)data[i]));
    error = fmax(error, fabs((double)near - (double)data[i]));
  }
  if (largest > 0) self->worst = fmax(self->worst, error / largest);
  return NULL;
}

/* ---- Ops ---- */

static o3_status_t note(precision_t *self, MlirValue wide, MlirValue narrow) {
  bool ok = o3_ptr_map_put(self->narrowed, wide.ptr, (void *)(uintptr_t)narrow.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* |value| in the narrow type, for |user|. */
static o3_status_t narrow(precision_t *self, MlirOperation user, MlirValue value, MlirValue *result) {
  const void *known = o3_ptr_map_get(self->narrowed, value.ptr);
  MlirOperation def = o3_value_def(value);
  if (known) {
    *result = (MlirValue){known};
    return NULL;
  }
  if (o3_op_is(def, "o3.constant")) O3_TRY(measure(self, def));
  bool argument = mlirValueIsABlockArgument(value);
  o3_builder_t b = argument ? o3_builder_before(user) : o3_builder_after(def);
  *result = o3_value_cast(&b, value, self->narrow);
  return argument ? NULL : note(self, value, *result);
}

static o3_status_t note_product(precision_t *self, MlirValue value) {
  bool ok = o3_ptr_map_put(self->products, value.ptr, (void *)(uintptr_t)value.ptr);
  return ok ? NULL : o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
}

static bool is_of_product(const precision_t *self, MlirValue value) {
  return o3_ptr_map_get(self->products, value.ptr) != NULL;
}

static o3_status_t narrow_op(precision_t *self, MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); ++i) {
    MlirValue operand = mlirOperationGetOperand(op, i), smaller;
    if (!is_f32(operand)) continue;
    O3_TRY(narrow(self, op, operand, &smaller));
    mlirOperationSetOperand(op, i, smaller);
  }
  MlirValue result = mlirOperationGetResult(op, 0);
  mlirValueSetType(result, o3_type_with_element(mlirValueGetType(result), self->narrow));
  o3_builder_t b = o3_builder_after(op);
  MlirValue wide = o3_value_cast(&b, result, mlirF32TypeGet(self->env->context));
  o3_value_replace_except(result, wide, o3_value_def(wide));
  ++self->num_narrow;
  if (o3_precision_kind(op) == O3_PRECISION_PRODUCT) O3_TRY(note_product(self, wide));
  return note(self, wide, result);
}

static bool has_several_users(MlirValue value) {
  return o3_value_has_uses(value) && mlirOperationIsNull(o3_value_single_user(value));
}

static bool makes_of_product(const precision_t *self, MlirOperation op) {
  o3_precision_kind_t kind = o3_precision_kind(op);
  bool any = false;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op) && !any; ++i)
    any = is_of_product(self, mlirOperationGetOperand(op, i));
  return any && (kind == O3_PRECISION_CARRY || kind == O3_PRECISION_EXACT);
}

/* Whether the model gives |value| away, which so is in memory in f32, and else it is only moved. */
static bool is_moved_result(MlirValue value) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  bool result = false, moved = true;
  for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    bool end = mlirOperationEqual(user, mlirBlockGetTerminator(mlirOperationGetBlock(user)));
    result |= end;
    moved &= end || o3_precision_kind(user) == O3_PRECISION_MOVE;
  }
  return result && moved;
}

/* Whether |value| goes through memory: what several ops read, and a product's rows that are normalized. */
static bool is_stored(const precision_t *self, MlirValue value) {
  if (has_several_users(value)) return !is_moved_result(value);
  MlirOperation user = o3_value_single_user(value);
  return !mlirOperationIsNull(user) && o3_op_is(user, "o3.layer_norm") && is_of_product(self, value);
}

/* In memory it is narrow. */
static o3_status_t store_narrow(precision_t *self, MlirOperation op) {
  MlirValue result = mlirOperationGetResult(op, 0);
  o3_builder_t b = o3_builder_after(op);
  MlirValue smaller = o3_value_cast(&b, result, self->narrow);
  MlirValue wide = o3_value_cast(&b, smaller, mlirF32TypeGet(self->env->context));
  o3_value_replace_except(result, wide, o3_value_def(smaller));
  if (is_of_product(self, result)) O3_TRY(note_product(self, wide));
  return note(self, wide, smaller);
}

static bool is_computed_f32(MlirOperation op) {
  static const char *const OTHERS[] = {"o3.constant", "o3.cast", "o3.empty"};
  bool other = o3_op_is_one_of(op, OTHERS, sizeof(OTHERS) / sizeof(OTHERS[0]));
  return !other && !mlirOperationGetNumRegions(op) && mlirOperationGetNumResults(op) == 1 &&
         is_f32(mlirOperationGetResult(op, 0));
}

static bool moves_result(MlirOperation op) {
  MlirValue from = mlirOperationGetNumOperands(op) ? mlirOperationGetOperand(op, 0) : (MlirValue){0};
  return o3_precision_kind(op) == O3_PRECISION_MOVE && !mlirOperationIsNull(o3_value_def(from)) &&
         is_computed_f32(o3_value_def(from)) && is_moved_result(from);
}

static bool is_narrow_op(MlirOperation op) {
  o3_precision_kind_t kind = o3_precision_kind(op);
  if (moves_result(op)) return false;
  return (kind == O3_PRECISION_PRODUCT || kind == O3_PRECISION_MOVE) && mlirOperationGetNumResults(op) == 1 &&
         is_f32(mlirOperationGetResult(op, 0)) && mlirAttributeIsNull(o3_op_attr(op, "acc"));
}

o3_status_t o3_rewrite_reduce_precision(o3_pass_env_t *env, MlirModule module) {
  MlirOperation main = o3_module_func(module, "main");
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  o3_ptr_map_t *kept;
  if (env->precision != O3_PRECISION_FP16 && env->precision != O3_PRECISION_BF16) return NULL;
  if (mlirOperationIsNull(main))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "the module has no function @main");
  bool half = env->precision == O3_PRECISION_FP16;
  precision_t self = {.env = env,
                      .narrow = half ? mlirF16TypeGet(env->context) : mlirBF16TypeGet(env->context),
                      .narrowed = o3_ptr_map_create(env->arena),
                      .products = o3_ptr_map_create(env->arena)};
  O3_TRY_ALLOC(self.narrowed);
  O3_TRY_ALLOC(self.products);
  O3_TRY(o3_collect_ops(main, &ops));
  O3_TRY(o3_precision_find_kept(env, &ops, self.narrow, &kept));
  for (size_t i = 0; i < ops.count; ++i) {
    MlirOperation op = {ops.items[i]};
    bool keeps = o3_ptr_map_get(kept, op.ptr) != NULL;
    if (is_narrow_op(op) && !keeps) {
      O3_TRY(narrow_op(&self, op));
    } else if (is_computed_f32(op)) {
      MlirValue result = mlirOperationGetResult(op, 0);
      ++self.num_wide;
      if (makes_of_product(&self, op)) O3_TRY(note_product(&self, result));
      if (!keeps && is_stored(&self, result)) O3_TRY(store_narrow(&self, op));
    }
  }
  o3_log(
      O3_LOG_NOTE,
      "precision %s: %d ops in %s, %d kept in float32; the largest error of a weight is %.1e of its tensor's "
      "largest",
      half ? "fp16" : "bf16", self.num_narrow, half ? "float16" : "bfloat16", self.num_wide, self.worst);
  return NULL;
}
