/* Whether passes have changed what a module computes. */
#ifndef O3_TOOLS_O3_OPT_EQUAL_H
#define O3_TOOLS_O3_OPT_EQUAL_H

#include "ir/pass.h"

/* Runs @main of both modules, of the normalize or rewrite stage and with static sizes, on the same random
 * inputs and compares the results; both are left as they were. INTERNAL with the worst element when they
 * differ by more than rounding. */
o3_status_t opt_equal_check(o3_pass_env_t *env, MlirModule before, MlirModule after, uint64_t seed)
    O3_MUST_USE;

#endif
