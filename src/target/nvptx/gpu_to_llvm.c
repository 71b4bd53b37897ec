/* nvptx-to-llvm: the rest of the way to the llvm dialect, for the device module by itself and then for the
 * host's code as on a CPU (cpu-to-llvm). The device module is taken out of the module meanwhile: the host's
 * passes would make calls of libm there, and some of its own run on whole modules only.
 *
 * Arithmetic of f16 and bf16 in generic kernels is done in f32, as on the CPU; kernels of families come in
 * the llvm and nvvm dialects and are not changed by it.
 */
#include "ir/context.h"
#include "target/cpu/cpu.h"
#include "target/cpu/cpu_ir.h"
#include "target/cpu/reshape.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"

static o3_status_t lower_device(MlirModule device) {
  O3_TRY(o3_cpu_replace_reshapes(mlirModuleGetOperation(device)));
  O3_TRY(o3_ir_run_pipeline(
      device,
      "builtin.module(convert-math-to-funcs,"
      "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32},canonicalize,cse)"));
  O3_TRY(o3_cpu_use_intrinsics(mlirModuleGetOperation(device), false));
  return o3_ir_run_pipeline(
      device,
      "builtin.module("
      "arith-expand,memref-expand,convert-vector-to-scf,expand-strided-metadata,lower-affine,"
      "convert-math-to-llvm,convert-nvvm-to-llvm,convert-scf-to-cf,convert-vector-to-llvm,"
      "convert-index-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,"
      "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse)");
}

static void move_ops(MlirBlock from, MlirBlock to) {
  MlirOperation op = mlirBlockGetFirstOperation(from);
  while (!mlirOperationIsNull(op)) {
    MlirOperation next = mlirOperationGetNextInBlock(op);
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(to, op);
    op = next;
  }
}

o3_status_t o3_nvptx_to_llvm(o3_pass_env_t *env, MlirModule module) {
  o3_nvptx_load_dialects(env->context);
  MlirOperation device = o3_nvptx_device_op(module);
  if (mlirOperationIsNull(device)) return o3_cpu_to_llvm(env, module);
  MlirBlock kernels = o3_nvptx_device(module);
  MlirModule apart = mlirModuleCreateEmpty(mlirLocationUnknownGet(env->context));
  move_ops(kernels, mlirModuleGetBody(apart));
  o3_status_t status = lower_device(apart);
  if (!status) status = o3_cpu_to_llvm(env, module);
  move_ops(mlirModuleGetBody(apart), kernels);
  mlirModuleDestroy(apart);
  return status;
}
