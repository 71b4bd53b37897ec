/* cpu-reference-loops: at O0, linalg as upstream's loops: parallel where the iterators say so, each sum in
 * the order of its iterators, nothing reordered or joined.
 *
 * Needs: bufferized linalg ops. Guarantees (at O0): none is left. The results at O0 are what those of other
 * levels are compared with, so the road is upstream's own. Parallel loops are outlined later like those of
 * other levels: LLVM's passes over loops take time that grows faster than the function they look at.
 */
#include "target/cpu/cpu.h"

o3_status_t o3_cpu_reference_loops(o3_pass_env_t *env, MlirModule module) {
  if (env->opt_level > 0) return NULL;
  return o3_ir_run_pipeline(module,
                            "builtin.module(func.func(convert-linalg-to-parallel-loops),canonicalize,cse)");
}
