/* The normalize stage: from an image of the model file to the small op set of ir/ops.def.
 *
 * Needs: the import stage's module (o3.node and o3.initializer over !o3.value).
 * Guarantees: all values are ranked tensors with known element types; `?` sizes are affine expressions of
 * named symbols, kept in the attribute o3.shape; functions and opset differences are expanded; what depends
 * on shapes alone is an o3.size or a constant; guards say which symbols must agree.
 *
 *     func.func @main(%x: tensor<?x64xf32> {o3.name = "x", o3.shape = affine_map<()[s0] -> (s0, 64)>}) ->
 *         (tensor<?x64xf32> {o3.name = "y", o3.shape = ...})
 *         attributes {o3.symbols = [{name = "N"}], o3.guards = [...]}
 */
#ifndef O3_NORMALIZE_NORMALIZE_H
#define O3_NORMALIZE_NORMALIZE_H

#include "ir/pass.h"

o3_status_t o3_normalize(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

#endif
