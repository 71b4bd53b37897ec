/* Running a module inside the compiler, for constant folding: an o3_evaluate_fn_t (ir/pass.h). */
#ifndef O3_DRIVER_EVALUATE_H
#define O3_DRIVER_EVALUATE_H

#include "ir/pass.h"

/* Lowers the module at O0 for this machine, loads the object into this process and runs it with the runtime
 * that compiled models have. Results go to env->weights. */
o3_status_t o3_evaluate(o3_pass_env_t *env, const o3_evaluation_t *evaluation) O3_MUST_USE;

#endif
