/* cpu-expand-math: exp, log, tanh and erf of f32 become calls of the functions in math_functions.mlir.
 *
 *     %y = math.exp %x : f32   ->   %y = func.call @o3k_math_exp(%x) : (f32) -> f32
 *
 * Needs: scalar math ops in loops. Guarantees: these four are left in f64 only; f16 and bf16 are computed in
 * f32. LLVM inlines the functions and vectorises the loops around them; calls of libm it would not.
 */
#include <stdlib.h>
#include <string.h>

#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

extern const unsigned char o3_embedded_math_functions_mlir_begin[];

static const struct {
  const char *op, *function;
} FUNCTIONS[] = {{"math.exp", "o3k_math_exp"},
                 {"math.log", "o3k_math_log"},
                 {"math.tanh", "o3k_math_tanh"},
                 {"math.erf", "o3k_math_erf"}};

static o3_status_t replace_math(MlirOperation op, void *context) {
  bool *used = context;
  for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]); ++i) {
    if (!o3_op_is(op, FUNCTIONS[i].op)) continue;
    MlirValue result = mlirOperationGetResult(op, 0);
    MlirType type = mlirValueGetType(result);
    if (!mlirTypeIsAF32(type)) return NULL;
    o3_builder_t b = o3_builder_before(op);
    MlirAttribute callee = mlirFlatSymbolRefAttrGet(b.context, O3_STR(FUNCTIONS[i].function));
    MlirValue call = o3_build1_attrs(&b, "func.call", type, O3_VALUES(mlirOperationGetOperand(op, 0)),
                                     O3_ATTRS({"callee", callee}));
    mlirValueReplaceAllUsesOfWith(result, call);
    mlirOperationDestroy(op);
    *used = true;
    return NULL;
  }
  return NULL;
}

o3_status_t o3_cpu_expand_math(o3_pass_env_t *env, MlirModule module) {
  bool used = false;
  o3_cpu_load_dialects(env->context);
  O3_TRY(o3_ir_run_pipeline(module, "builtin.module(math-extend-to-supported-types,canonicalize)"));
  O3_TRY(o3_walk(mlirModuleGetOperation(module), replace_math, &used));
  if (!used) return NULL;
  return o3_cpu_add_functions(module, (const char *)o3_embedded_math_functions_mlir_begin,
                              "math_functions.mlir");
}
