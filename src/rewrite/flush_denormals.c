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
 * hold zeros and normal numbers, or none of 2^-100. Whoever else reads such a constant reads the old one.
 * o3c --explain says how many have gone. */
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

/* How many there are, if beside them is a number that they are nothing to: 2^-126 is 2^-26 of it or less. */
static size_t count_negligible(const float *data, size_t count) {
  size_t denormals = 0;
  bool has_normal = false;
  for (size_t i = 0; i < count; ++i) {
    denormals += is_denormal(data[i]);
    has_normal |= isfinite(data[i]) && fabsf(data[i]) >= 0x1p-100f;
  }
  return has_normal ? denormals : 0;
}

/* What has become of a constant. */
typedef struct flushed {
  MlirValue made; /* the constant without them, right behind the old one */
  size_t gone;    /* how many they are */
} flushed_t;

/* |known->gone| is 0, and nothing is made, when they count, or it has none. */
static o3_status_t build_flushed(o3_pass_env_t *env, MlirOperation def, flushed_t *known) {
  MlirAttribute old = o3_op_attr(def, "value"), attr;
  MlirType type = mlirValueGetType(mlirOperationGetResult(def, 0));
  size_t bytes;
  const float *from = o3_weights_data(env->weights, old, &bytes);
  O3_TRY_ALLOC(from);
  size_t count = bytes / sizeof(float);
  *known = (flushed_t){.gone = count_negligible(from, count)};
  if (!known->gone) return NULL;
  float *to = o3_weights_alloc(env->weights, bytes);
  O3_TRY_ALLOC(to);
  for (size_t i = 0; i < count; ++i) to[i] = is_denormal(from[i]) ? copysignf(0, from[i]) : from[i];
  const char *name = o3_weights_name(env->weights, old);
  O3_TRY(o3_weights_add(env->weights, name ? name : "flushed", type, to, bytes, &attr));
  o3_builder_t b = o3_builder_after(def);
  known->made = o3_build1_attrs(&b, "o3.constant", type, O3_NO_VALUES, O3_ATTRS({"value", attr}));
  return NULL;
}

static bool is_f32_constant(MlirValue value) {
  MlirOperation def = o3_value_def(value);
  return !mlirOperationIsNull(def) && o3_op_is(def, "o3.constant") &&
         mlirTypeIsAF32(o3_type_element(mlirValueGetType(value)));
}

/* What |done| knows of the constant |operand|, or finds out. */
static o3_status_t flush(o3_pass_env_t *env, o3_ptr_map_t *done, MlirValue operand,
                         const flushed_t **flushed) {
  *flushed = o3_ptr_map_get(done, operand.ptr);
  if (*flushed) return NULL;
  flushed_t *known = O3_ARENA_NEW(env->arena, flushed_t);
  O3_TRY_ALLOC(known);
  O3_TRY(build_flushed(env, o3_value_def(operand), known));
  O3_TRY_ALLOC(o3_ptr_map_put(done, operand.ptr, known));
  *flushed = known;
  return NULL;
}

static o3_status_t flush_operand(o3_pass_env_t *env, MlirModule module, o3_ptr_map_t *done, MlirOperation op,
                                 intptr_t index) {
  const flushed_t *flushed;
  MlirValue operand = mlirOperationGetOperand(op, index);
  if (!is_f32_constant(operand)) return NULL;
  O3_TRY(flush(env, done, operand, &flushed));
  if (!flushed->gone) return NULL;
  const char *text = o3_arena_printf(env->arena, "0 in place of denormal numbers: %zu %s", flushed->gone,
                                     index < 2 ? "of the weights" : "of the biases");
  O3_TRY_ALLOC(text);
  O3_TRY(o3_choice_note(env->arena, module, op, text));
  mlirOperationSetOperand(op, index, flushed->made);
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
    for (intptr_t k = 0; is_product(op) && k < mlirOperationGetNumOperands(op); ++k)
      O3_TRY(flush_operand(env, module, done, op, k));
  }
  return NULL;
}
