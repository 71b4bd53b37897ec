/* Running passes one by one: verification, IR printing, reproducers. */
#ifndef O3_DRIVER_PASS_RUN_H
#define O3_DRIVER_PASS_RUN_H

#include "driver/pass_table.h"

typedef struct o3_pass_runner {
  o3_pass_env_t *env;
  const o3_target_t *target;
  const char *print_before, *print_after; /* a pass's name, "all" or NULL */
  const char *reproducer_folder;          /* where reproducers go; NULL: none are written */
} o3_pass_runner_t;

/* Runs |pass| and MLIR's verifier after it, and |last|: the check that the module is legal after the pass's
 * stage. An INTERNAL failure writes the module from before the pass to o3-reproducer-<pass>.mlir (and .o3w)
 * and names that file in its message. */
o3_status_t o3_pass_run(const o3_pass_runner_t *runner, const o3_pass_info_t *pass, MlirModule module,
                        bool last) O3_MUST_USE;

/* The pass that this thread runs, for messages about crashes; NULL when none. */
const char *o3_pass_current(void);

#endif
