/* The fuse stage: groups of ops become kernels, private functions that @main calls.
 *
 * Needs: the lowered module. Guarantees: the same computation; each kernel is a function
 *
 *     func.func private @k<i>_<kind>_<node>(%in..., %out: tensor<...>) -> tensor<...>
 *         attributes {o3.kernel_kind = "rows", o3.nodes = ["Softmax_3", ...], ...}
 *
 * whose body has linalg on tensors and writes its result into %out. What no kernel takes stays in @main.
 */
#ifndef O3_FUSE_FUSE_H
#define O3_FUSE_FUSE_H

#include "ir/pass.h"

o3_status_t o3_fuse(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* What the kernels of a module between the fuse stage and bufferize are made of, why they end where they do
 * and, after the schedule stage, how they will be computed: a table for people, malloc'ed. */
o3_status_t o3_fuse_explain(MlirModule module, char **explanation) O3_MUST_USE;

/* The launches of a GPU's module behind the loops stage: nodes, the family of the kernel, its schedule. */
o3_status_t o3_fuse_explain_launches(MlirModule module, char **explanation) O3_MUST_USE;

#endif
