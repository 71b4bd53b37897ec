/* Chains: kernels of two products that run one after the other become one where the second reads a few rows
 * of the first's result at a time and the target says that this pays. */
#ifndef O3_FUSE_CHAIN_H
#define O3_FUSE_CHAIN_H

#include "ir/pass.h"

/* For all kernels that @main calls. Where the target refuses, the first kernel's o3.stop tells why. */
o3_status_t o3_fuse_chains(o3_pass_env_t *env, o3_arena_t *arena, MlirModule module) O3_MUST_USE;

#endif
