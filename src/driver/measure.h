/* Measuring: an op of the model as a model of its own, compiled in several ways and timed in this process: an
 * o3_measure_fn_t (ir/pass.h). What is timed are the op's kernels as profiles tell them (o3/model.h). */
#ifndef O3_DRIVER_MEASURE_H
#define O3_DRIVER_MEASURE_H

#include "target/target.h"

typedef struct o3_measurer {
  const o3_target_t *target; /* of the compilation */
  int threads;               /* of the sessions that are timed */
  /* Told what is measured next; may be NULL. */
  void (*progress)(void *context, const char *what);
  void *context;
} o3_measurer_t;

/* UNSUPPORTED, with the features that are missing, when this machine cannot run the target's code. */
o3_status_t o3_measure_check(const o3_target_t *target) O3_MUST_USE;

/* env->measurer says how. Takes the time that compiling the op takes, |count| times, and then at most about
 * O3_MEASURE_MS for each, or five runs if those take longer. The module and env->weights stay as they are. */
enum { O3_MEASURE_MS = 150 };
o3_status_t o3_measure(o3_pass_env_t *env, const o3_measure_t *request) O3_MUST_USE;

#endif
