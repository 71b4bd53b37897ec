/* Compiled code in the compiler's own process: to fold constants with, and to measure.
 *
 *     o3_loaded_code_t code;
 *     O3_TRY(o3_loaded_code_open(env, module, &object, &code));
 *     ... code.run, as o3rt_model_t.run of a session of o3rt_api ...
 *     status = o3_status_join(status, o3_loaded_code_close(&code));
 */
#ifndef O3_DRIVER_LOADED_CODE_H
#define O3_DRIVER_LOADED_CODE_H

#include <llvm-c/LLJIT.h>

#include "base/map.h"
#include "o3/model.h"
#include "runtime/compiled.h"
#include "target/target.h"

/* The runtime's table of functions; compiled models refer to it by name too. */
extern const o3_model_api_t o3rt_api;

typedef struct o3_loaded_code {
  o3rt_run_fn_t run;
  LLVMOrcLLJITRef jit;
  o3_ptr_vec_t copies; /* of weights that were not aligned, malloc'ed */
} o3_loaded_code_t;

/* Loads |object|, which emit_object made of |module|, whose o3.weights lie in env->weights and must outlive
 * the code. env->arena is used for as long too. On failure nothing is left to close. */
o3_status_t o3_loaded_code_open(o3_pass_env_t *env, MlirModule module, const o3_artifact_t *object,
                                o3_loaded_code_t *code) O3_MUST_USE;
o3_status_t o3_loaded_code_close(o3_loaded_code_t *code) O3_MUST_USE;

/* Code counts on weights being aligned, as the packager lays them out; in a model file they lie anywhere. The
 * address of a copy where |data| is not aligned; copies are noted in |copies|, to be freed after the run. */
o3_status_t o3_loaded_data_align(const void *data, size_t bytes, o3_ptr_vec_t *copies, const void **aligned)
    O3_MUST_USE;

/* What a runtime model says of an input or output of this type, as the normalize stage leaves types (lowering
 * takes their signs). Sizes are allocated in |arena|, |name| is borrowed. */
o3_status_t o3_loaded_tensor_describe(o3_arena_t *arena, const char *name, MlirType type,
                                      o3rt_tensor_t *tensor) O3_MUST_USE;

#endif
