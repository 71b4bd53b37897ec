/* cpu-asserts: a check at run time ends the run with its message.
 *
 *     cf.assert %ok, "node 'Gather_7': index out of range"
 * ->  scf.if %not_ok { llvm.call @o3rt_fail(%session, %message) }
 *
 * Needs: @main has its session argument. o3rt_fail does not return. Checks in the body of a linalg op stay:
 * on a card they are nvptx-kernels' (nvptx-checks puts them there).
 */
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"

typedef struct assert_context {
  MlirModule module;
  MlirStringRef message;
} assert_context_t;

static o3_status_t build_failure(o3_builder_t *builder, void *context, MlirValue *yields) {
  const assert_context_t *it = context;
  (void)yields;
  MlirValue operands[2] = {o3_cpu_session(it->module), o3_cpu_text(builder, it->module, it->message)};
  o3_cpu_call_runtime(builder, it->module, O3_CPU_RT_FAIL, 2, operands);
  return NULL;
}

static o3_status_t replace_assert(MlirOperation op, void *context) {
  if (!o3_op_is(op, "cf.assert") || o3_op_is(mlirOperationGetParentOperation(op), "linalg.generic"))
    return NULL;
  assert_context_t it = {*(MlirModule *)context, o3_op_string(op, "msg")};
  o3_builder_t builder = o3_builder_before(op);
  MlirType i1 = mlirIntegerTypeGet(builder.context, 1);
  MlirValue fails =
      o3_build2(&builder, "arith.xori", mlirOperationGetOperand(op, 0), o3_build_int(&builder, i1, 1));
  o3_if_t branch = {.condition = fails, .then_body = build_failure, .context = &it};
  O3_TRY(o3_build_if(&builder, &branch, NULL));
  mlirOperationDestroy(op);
  return NULL;
}

o3_status_t o3_cpu_asserts(o3_pass_env_t *env, MlirModule module) {
  o3_cpu_load_dialects(env->context);
  return o3_walk(o3_module_func(module, "main"), replace_assert, &module);
}
