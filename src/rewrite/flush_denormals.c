/* flush-denormals: zeros for weights that are denormal numbers, on CPUs.
 *
 *     %w = "o3.constant"() {value = dense<[1.0, 1.0e-40]>}    =>    dense<[1.0, 0.0]>
 *     %y = "o3.conv_blocked"(%x, %w, %b)
 *
 * Training with decay leaves such weights where a channel is not used, and Intel's processors take about 50
 * ns more for each vector that holds one. They go where the same constant holds a number of 2^-100 or more:
 * beside that one they are below its rounding, for inputs of one magnitude. The measure is the largest number
 * of all of the constant, not of one output's part: outputs of unused channels have nothing but denormals,
 * and pass them to inputs whose weights are denormals too. Constants of small numbers alone stay as they are.
 * Biases that are operands of a product are flushed likewise, by their own largest number: sums start with
 * them.
 *
 * Runs twice: before dead channels and sparse formats are looked for, which then see zeros, and when all
 * constants are folded. Needs: constants. Guarantees: constants in f32 that are weights or biases of products
 * hold zeros and normal numbers, or none of 2^-100. Whoever else reads such a constant reads the old one. */
#include <math.h>
#include <string.h>

#include "rewrite/passes.h"
#include "rewrite/rewrite_ir.h"

static bool is_product(MlirOperation op) {
  static const char *const NAMES[] = {"o3.matmul",           "o3.conv",         "o3.conv_transpose",
                                      "o3.matmul_packed",    "o3.conv_blocked", "o3.winograd_blocked",
                                      "o3.depthwise_blocked"};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); ++i)
    if (o3_op_is(op, NAMES[i])) return true;
  return false;
}

static bool is_denormal(float x) { return fpclassify(x) == FP_SUBNORMAL; }

/* Whether there are any, and beside them a number that they are nothing to: 2^-126 is 2^-26 of it or less. */
static bool has_negligible(const float *data, size_t count) {
  bool has_denormals = false, has_normal = false;
  for (size_t i = 0; i < count; ++i) {
    has_denormals |= is_denormal(data[i]);
    has_normal |= isfinite(data[i]) && fabsf(data[i]) >= 0x1p-100f;
  }
  return has_denormals && has_normal;
}

/* The constant |def| without them, right behind it; null when they count, or it has none. */
static o3_status_t build_flushed(o3_pass_env_t *env, MlirOperation def, MlirValue *made) {
  MlirAttribute old = o3_op_attr(def, "value"), attr;
  MlirType type = mlirValueGetType(mlirOperationGetResult(def, 0));
  size_t bytes;
  const float *from = o3_weights_data(env->weights, old, &bytes);
  size_t count = bytes / sizeof(float);
  *made = (MlirValue){0};
  O3_TRY_ALLOC(from);
  if (!has_negligible(from, count)) return NULL;
  float *to = o3_weights_alloc(env->weights, bytes);
  O3_TRY_ALLOC(to);
  for (size_t i = 0; i < count; ++i) to[i] = is_denormal(from[i]) ? copysignf(0, from[i]) : from[i];
  const char *name = o3_weights_name(env->weights, old);
  O3_TRY(o3_weights_add(env->weights, name ? name : "flushed", type, to, bytes, &attr));
  o3_builder_t b = o3_builder_after(def);
  *made = o3_build1_attrs(&b, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", attr}));
  return NULL;
}

/* Null when the operand is no constant in f32, or has no denormals that go. */
static o3_status_t flush(o3_pass_env_t *env, o3_ptr_map_t *done, MlirValue operand, MlirValue *made) {
  MlirOperation def = o3_value_def(operand);
  *made = (MlirValue){0};
  if (mlirOperationIsNull(def) || !o3_op_is(def, "o3.constant")) return NULL;
  if (!mlirTypeIsAF32(o3_type_element(mlirValueGetType(operand)))) return NULL;
  if (o3_ptr_map_get(done, operand.ptr)) {
    made->ptr = o3_ptr_map_get(done, operand.ptr);
    if (mlirValueEqual(*made, operand)) *made = (MlirValue){0};
    return NULL;
  }
  O3_TRY(build_flushed(env, def, made));
  const void *known = mlirValueIsNull(*made) ? operand.ptr : made->ptr;
  O3_TRY_ALLOC(o3_ptr_map_put(done, operand.ptr, (void *)(uintptr_t)known));
  return NULL;
}

o3_status_t o3_rewrite_flush_denormals(o3_pass_env_t *env, MlirModule module) {
  if (env->machine && env->machine->gpu) return NULL;
  o3_ptr_vec_t ops = o3_ptr_vec(env->arena);
  o3_ptr_map_t *done = o3_ptr_map_create(env->arena);
  O3_TRY_ALLOC(done);
  O3_TRY(o3_collect_ops(mlirModuleGetOperation(module), &ops));
  for (size_t i = 0; i < ops.count; ++i) {
    MlirOperation op = {ops.items[i]};
    for (intptr_t k = 0; is_product(op) && k < mlirOperationGetNumOperands(op); ++k) {
      MlirValue made;
      O3_TRY(flush(env, done, mlirOperationGetOperand(op, k), &made));
      if (!mlirValueIsNull(made)) mlirOperationSetOperand(op, k, made);
    }
  }
  return NULL;
}
