/* cpu-reference-loops: at O0, linalg as sequential loops in the order of its iterators, nothing reordered.
 *
 * Needs: bufferized linalg ops. Guarantees (at O0): none is left. The results at O0 are what those of other
 * levels are compared with, so the road is upstream's own.
 */
#include "target/cpu/cpu.h"

o3_status_t o3_cpu_reference_loops(o3_pass_env_t *env, MlirModule module) {
  if (env->opt_level > 0) return NULL;
  return o3_ir_run_pipeline(module, "builtin.module(func.func(convert-linalg-to-loops),canonicalize,cse)");
}
