/* cpu-expand-math: exp, log, tanh and erf of f32 become calls of the functions in math_functions.mlir.
 *
 *     %y = math.exp %x : f32            ->   %y = func.call @o3k_math_exp(%x) : (f32) -> f32
 *     %y = math.exp %x : vector<16xf32> ->   %y = func.call @o3k_math_exp_x16(%x) : ...
 *
 * An exponential that is known to be of nothing positive (O3_CPU_NOT_POSITIVE) has a function of its own, and
 * so has one that is only added to a number, as that of a sigmoid is: both save a third of the operations.
 *
 * Needs: math ops on scalars in loops, or on vectors of one dimension. Guarantees: these four are left in f64
 * only; f16 and bf16 are computed in f32. LLVM inlines the functions and vectorises the loops around scalar
 * ones; calls of libm it would not. The functions for vectors are the scalar ones with other types: they hold
 * only ops that work element by element.
 */
#include <math.h>
#include <stdio.h>

#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

extern const unsigned char o3_embedded_math_functions_mlir_begin[];

static const struct {
  const char *op, *function;
} FUNCTIONS[] = {{"math.exp", "o3k_math_exp"},
                 {"math.log", "o3k_math_log"},
                 {"math.tanh", "o3k_math_tanh"},
                 {"math.erf", "o3k_math_erf"}};

typedef struct expander {
  MlirModule module;
  MlirAttribute in_turn; /* of loops whose vectors are computed two at a time */
  bool used;
} expander_t;

static o3_status_t add_functions(MlirModule module) {
  return o3_cpu_add_functions(module, (const char *)o3_embedded_math_functions_mlir_begin,
                              "math_functions.mlir");
}

/* ---- Vectors ---- */

static MlirType widened(MlirType type, int64_t lanes) { return mlirVectorTypeGet(1, &lanes, type); }

static void widen_op(MlirOperation op, int64_t lanes) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); ++i) {
    MlirValue result = mlirOperationGetResult(op, i);
    mlirValueSetType(result, widened(mlirValueGetType(result), lanes));
  }
  if (!o3_op_is(op, "arith.constant")) return;
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  o3_op_attr_set(op, "value", mlirDenseElementsAttrSplatGet(type, o3_op_attr(op, "value")));
}

/* The function |scalar| for vectors, as |name|. */
static void build_widened(MlirModule module, MlirOperation scalar, const char *name, int64_t lanes) {
  MlirOperation func = mlirOperationClone(scalar);
  MlirContext context = mlirOperationGetContext(func);
  MlirBlock body = o3_func_body(func);
  MlirValue argument = mlirBlockGetArgument(body, 0);
  MlirType type = widened(mlirValueGetType(argument), lanes);
  mlirValueSetType(argument, type);
  MlirOperation op = mlirBlockGetFirstOperation(body);
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) widen_op(op, lanes);
  o3_op_attr_set(func, "sym_name", o3_attr_string(context, name));
  o3_op_attr_set(func, "function_type", o3_attr_type(mlirFunctionTypeGet(context, 1, &type, 1, &type)));
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), func);
}

static o3_status_t add_widened(expander_t *self, const char *function, const char *name, int64_t lanes) {
  if (!mlirOperationIsNull(o3_module_func(self->module, name))) return NULL;
  O3_TRY(add_functions(self->module));
  build_widened(self->module, o3_module_func(self->module, function), name, lanes);
  return NULL;
}

static bool is_f32_vector(MlirType type) {
  return mlirTypeIsAVector(type) && mlirShapedTypeGetRank(type) == 1 &&
         mlirTypeIsAF32(mlirShapedTypeGetElementType(type));
}

/* ---- Exponentials ---- */

/* Whether |value| is a number, or a vector of it, beside which 2^-125 is nothing. */
static bool is_large_number(MlirValue value) {
  const double least = 0x1p-100;
  MlirOperation def = o3_value_def(value);
  if (mlirOperationIsNull(def) || !o3_op_is(def, "arith.constant")) return false;
  MlirAttribute number = o3_op_attr(def, "value");
  if (mlirAttributeIsADenseElements(number) && mlirDenseElementsAttrIsSplat(number))
    number = mlirDenseElementsAttrGetSplatValue(number);
  return mlirAttributeIsAFloat(number) && fabs(mlirFloatAttrGetValueDouble(number)) >= least;
}

/* Whether all that happens to the result is that a number is added. */
static bool is_only_added(MlirOperation exp) {
  MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(exp, 0));
  if (mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use))) return false;
  MlirOperation add = mlirOpOperandGetOwner(use);
  if (!o3_op_is(add, "arith.addf")) return false;
  return is_large_number(mlirOperationGetOperand(add, 1 - mlirOpOperandGetOperandNumber(use)));
}

static const char *exponential_of(MlirOperation exp) {
  if (!mlirAttributeIsNull(o3_op_attr(exp, O3_CPU_NOT_POSITIVE))) return "o3k_math_exp_low";
  return is_only_added(exp) ? "o3k_math_exp_added" : "o3k_math_exp";
}

/* ---- All ---- */

/* Each op of a polynomial waits for the one before it, and the processor sees too few of the following
 * vectors: those of two turns of the loop are computed side by side. */
static void take_in_turn(const expander_t *self, MlirOperation op) {
  MlirOperation loop = mlirOperationGetParentOperation(op);
  if (o3_op_is(loop, "scf.for")) o3_op_attr_set(loop, "loop_annotation", self->in_turn);
}

static o3_status_t replace_math(MlirOperation op, void *context) {
  expander_t *self = context;
  for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]); ++i) {
    if (!o3_op_is(op, FUNCTIONS[i].op)) continue;
    MlirValue result = mlirOperationGetResult(op, 0);
    MlirType type = mlirValueGetType(result);
    bool is_vector = is_f32_vector(type);
    if (!mlirTypeIsAF32(type) && !is_vector) return NULL;
    o3_builder_t b = o3_builder_before(op);
    char name[64];
    const char *function = o3_op_is(op, "math.exp") ? exponential_of(op) : FUNCTIONS[i].function;
    snprintf(name, sizeof(name), "%s", function);
    if (!is_vector) take_in_turn(self, op);
    if (is_vector) {
      int64_t lanes = mlirShapedTypeGetDimSize(type, 0);
      snprintf(name, sizeof(name), "%s_x%d", function, (int)lanes);
      O3_TRY(add_widened(self, function, name, lanes));
    }
    MlirAttribute callee = mlirFlatSymbolRefAttrGet(b.context, O3_STR(name));
    MlirValue call = o3_build1_attrs(&b, "func.call", type, O3_VALUES(mlirOperationGetOperand(op, 0)),
                                     O3_ATTRS({"callee", callee}));
    mlirValueReplaceAllUsesOfWith(result, call);
    mlirOperationDestroy(op);
    self->used = true;
    return NULL;
  }
  return NULL;
}

o3_status_t o3_cpu_expand_math(o3_pass_env_t *env, MlirModule module) {
  expander_t self = {.module = module};
  o3_cpu_load_dialects(env->context);
  O3_TRY(o3_ir_run_pipeline(module, "builtin.module(math-extend-to-supported-types,canonicalize)"));
  static const char IN_TURN[] = "#llvm.loop_annotation<interleave = <count = 2 : i32>>";
  self.in_turn = o3_attr_parse(env->context, IN_TURN);
  O3_TRY(o3_walk(mlirModuleGetOperation(module), replace_math, &self));
  return self.used ? add_functions(module) : NULL;
}
