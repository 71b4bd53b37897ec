/* cpu-to-llvm: the rest of the way, by upstream's conversions.
 *
 * Needs: scf, memref, arith, math, vector and func ops on buffers. Guarantees: llvm dialect only.
 *
 * bf16 is emulated in f32 with integer code for the conversions and f16 likewise with the machine's own:
 * otherwise LLVM would call functions of compiler-rt, which a model is not linked with. Math functions that
 * are instructions become intrinsics, the others calls of libm.
 */
#include "target/cpu/cpu.h"

o3_status_t o3_cpu_to_llvm(o3_pass_env_t *env, MlirModule module) {
  (void)env;
  return o3_ir_run_pipeline(
      module,
      "builtin.module("
      "math-extend-to-supported-types,"
      "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32},"
      "canonicalize,cse,"
      "math-expand-ops{ops=roundeven},"
      "arith-expand{include-bf16=true},memref-expand,"
      "convert-vector-to-scf,expand-strided-metadata,lower-affine,"
      "convert-vector-to-llvm,convert-scf-to-cf,"
      "convert-math-to-llvm,convert-math-to-libm,"
      "convert-index-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,"
      "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse)");
}
