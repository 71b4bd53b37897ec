/* nvptx-math: math functions of kernels become code of ours; the card has no libm, and NVIDIA's library of
 * functions is not ours to give.
 *
 *     %y = math.exp %x : f32   ->   %y = func.call @o3k_math_exp(%x) : (f32) -> f32     in the device module
 *
 * Needs: the device module. Guarantees: no math op is left that the NVPTX back end has no instruction for.
 * f16 and bf16 are computed in f32. The f32 functions of the CPU are shared; device_math.mlir has the others.
 */
#include <string.h>

#include "ir/context.h"
#include "target/cpu/cpu_ir.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"

extern const unsigned char o3_embedded_math_functions_mlir_begin[];
extern const unsigned char o3_embedded_device_math_mlir_begin[];

static const struct {
  const char *op, *single, *twice; /* functions of f32 and of f64 */
} FUNCTIONS[] = {
#define O3_DEVICE_MATH(op, single, twice) {"math." op, single, twice},
#include "target/nvptx/device_math.def"
#undef O3_DEVICE_MATH
};

typedef struct math {
  bool used;
} math_t;

static o3_status_t replace(MlirOperation op, void *context) {
  math_t *self = context;
  for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(FUNCTIONS[0]); ++i) {
    if (!o3_op_is(op, FUNCTIONS[i].op)) continue;
    MlirValue result = mlirOperationGetResult(op, 0), operands[2];
    MlirType type = mlirValueGetType(result);
    const char *function = mlirTypeIsAF64(type) ? FUNCTIONS[i].twice : FUNCTIONS[i].single;
    int count = (int)mlirOperationGetNumOperands(op);
    for (int k = 0; k < count; ++k) operands[k] = mlirOperationGetOperand(op, k);
    o3_builder_t b = o3_builder_before(op);
    MlirAttribute callee = mlirFlatSymbolRefAttrGet(b.context, O3_STR(function));
    MlirValue call = o3_build1_attrs(&b, "func.call", type, count, operands, O3_ATTRS({"callee", callee}));
    mlirValueReplaceAllUsesOfWith(result, call);
    mlirOperationDestroy(op);
    self->used = true;
    return NULL;
  }
  return NULL;
}

/* Functions of |text| at the end of the device module. */
static o3_status_t add_functions(MlirModule module, const unsigned char *text, const char *name) {
  MlirModule parsed;
  const char *chars = (const char *)text;
  MlirBlock device = o3_nvptx_device(module);
  O3_TRY(o3_ir_parse(mlirModuleGetContext(module), chars, strlen(chars), name, &parsed));
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(parsed));
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(device, op);
    op = next;
  }
  mlirModuleDestroy(parsed);
  return NULL;
}

o3_status_t o3_nvptx_math(o3_pass_env_t *env, MlirModule module) {
  math_t self = {0};
  o3_nvptx_load_dialects(env->context);
  MlirOperation device = o3_nvptx_device_op(module);
  if (mlirOperationIsNull(device)) return NULL;
  O3_TRY(o3_ir_run_pipeline(module,
                            "builtin.module(gpu.module(math-extend-to-supported-types,"
                            "math-expand-ops{ops=fpowi,clampf}))"));
  O3_TRY(o3_walk(device, replace, &self));
  if (!self.used) return NULL;
  O3_TRY(add_functions(module, o3_embedded_math_functions_mlir_begin, "math_functions.mlir"));
  return add_functions(module, o3_embedded_device_math_mlir_begin, "device_math.mlir");
}
