/* Times of sparse formats on this machine, for choose-sparse. */
#ifndef O3_REWRITE_MEASURE_SPARSE_H
#define O3_REWRITE_MEASURE_SPARSE_H

#include "analysis/sparse_choice.h"
#include "ir/pass.h"

/* What has been measured in a compilation. */
typedef struct o3_measured_layers {
  o3_ptr_vec_t items;
  bool cold;             /* the model's weights are more than caches hold */
  int num_ops, num_seen; /* products of the model; those that were asked about */
  int num_symbolic;      /* that could not be measured because their sizes are symbolic */
} o3_measured_layers_t;

/* Fills in |measured| of dense and of the options that the cost model likes best, with env->measure; from an
 * equal layer with equal zeros when there was one. Leaves them 0 when sizes are symbolic. */
o3_status_t o3_sparse_measure(o3_pass_env_t *env, o3_measured_layers_t *known, MlirOperation op,
                              o3_sparse_choice_t *row) O3_MUST_USE;

#endif
