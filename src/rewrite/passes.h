/* The passes of the rewrite stage: o3 to o3, in the order of their run, which the table src/driver/passes.def
 * says. */
#ifndef O3_REWRITE_PASSES_H
#define O3_REWRITE_PASSES_H

#include "ir/pass.h"

/* Removes ops whose results nobody reads, merges equal ones, drops broadcasts that the next op does itself,
 * and computes the logarithm of a softmax without its quotient. */
o3_status_t o3_rewrite_simplify(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* Moves factors and sums per output channel into the weights and bias of the convolution before them. */
o3_status_t o3_rewrite_absorb_affine(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* On cards: products of dequantised 8-bit floats multiply these, and scale what comes out. */
o3_status_t o3_rewrite_float8_products(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* On CPUs: products and convolutions of 8-bit integers are computed in f32, exactly. */
o3_status_t o3_rewrite_integer_products(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* On machines whose products of halves are no faster: models in f16 and bf16 are computed in f32. */
o3_status_t o3_rewrite_widen_precision(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* Computes what depends on constants alone. */
o3_status_t o3_rewrite_fold_constants(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* Leaves out channels that no result depends on, and those that hold one number whatever the inputs are. */
o3_status_t o3_rewrite_dead_channels(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* With --precision on cards with a kernel of attention: one product makes queries, keys and values. */
o3_status_t o3_rewrite_join_products(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* With --precision: products and moved data in fp16 or bf16, the rest in f32. */
o3_status_t o3_rewrite_reduce_precision(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* On cards with a kernel of attention: keys and values that heads share are not repeated. */
o3_status_t o3_rewrite_share_heads(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* On machines with channels in blocks: two transposed convolutions without overlaps become convolutions of
 * pixels. */
o3_status_t o3_rewrite_join_upsampling(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* Chooses the sparse format of each constant weight, or obeys the user, and marks the product with it. */
o3_status_t o3_rewrite_choose_sparse(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* Makes two products of one whose weights are blocks and compressed rows. */
o3_status_t o3_rewrite_split_hybrid(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* Moves convolutions and what surrounds them to channel-blocked layout, constant matrices to panels. */
o3_status_t o3_rewrite_layout(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* For GPUs: constant matrices by columns, where kernels want their k contiguous. */
o3_status_t o3_rewrite_weight_columns(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

/* For CPUs: weights of products that are denormal numbers become zeros. */
o3_status_t o3_rewrite_flush_denormals(o3_pass_env_t *env, MlirModule module) O3_MUST_USE;

#endif
