/* Inside the CPU back end: its passes (cpu_passes.def) and the emission of objects. */
#ifndef O3_TARGET_CPU_CPU_H
#define O3_TARGET_CPU_CPU_H

#include <llvm-c/Types.h>

#include "target/target.h"

#define O3_CPU_PASS(stage, name, function, level, summary) \
  o3_status_t function(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;
#include "target/cpu/cpu_passes.def"
#undef O3_CPU_PASS

/* See o3_target_t. */
o3_status_t o3_cpu_emit_llvm_ir(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) O3_MUST_USE;
o3_status_t o3_cpu_emit_object(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) O3_MUST_USE;

/* What another back end puts into the object besides the module's code. */
typedef struct o3_cpu_extension {
  o3_status_t (*extend)(LLVMModuleRef module, void *context);
  void *context;
} o3_cpu_extension_t;
o3_status_t o3_cpu_emit_extended(o3_pass_env_t *env, MlirModule module, const o3_cpu_extension_t *extension,
                                 o3_artifact_t *artifact) O3_MUST_USE;

/* The module attribute that cpu-weights sets: an array of {symbol = "o3w_<name>", value = <elements>}. The
 * packager defines each symbol as the bytes of the value (o3_weights_data), read-only and 64-byte aligned. */
#define O3_CPU_WEIGHTS_ATTR "o3.weights"

#endif
