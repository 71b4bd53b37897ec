/* The lower stage: the upstream road from the o3 dialect to linalg, tensor, arith, math and scf on tensors.
 *
 * Needs: a normalized module. Guarantees: no o3 op is left; unsigned element types have become signless;
 * constants are arith.constant with dense (small) or dense_resource (big) attributes; checks at run time are
 * cf.assert "message"; guards on symbols are a function `func.func private @check(index...) -> i32` of the
 * symbols that gives the index of the first guard that fails, or -1; each tensor size is an affine.apply of
 * tensor.dim of @main's arguments, wherever it does not depend on data.
 */
#ifndef O3_TARGET_LOWER_H
#define O3_TARGET_LOWER_H

#include "ir/pass.h"

o3_status_t o3_lower(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

#endif
