/* Sequential loops that carry tensors, for what no linalg op can say: scatters, counts, sorting. */
#ifndef O3_TARGET_REF_LOWER_NEST_H
#define O3_TARGET_REF_LOWER_NEST_H

#include "target/ref/lowering.h"

/* The innermost body: |position| has an index for each loop, |state| the carried values, to be replaced. */
typedef o3_status_t (*o3_nest_body_fn_t)(o3_builder_t *builder, void *context, const MlirValue *position,
                                         MlirValue *state);

typedef struct o3_nest {
  int rank;
  const MlirValue *sizes; /* index: each loop runs from 0 */
  int num_state;
  o3_nest_body_fn_t body;
  void *context;
} o3_nest_t;

/* Builds the loops, row-major; |state| is what they start with and, on return, what they end with. */
o3_status_t o3_lw_nest(o3_builder_t *builder, const o3_nest_t *nest, MlirValue *state) O3_MUST_USE;

/* tensor.insert of a scalar. */
MlirValue o3_lw_insert(o3_builder_t *builder, MlirValue scalar, MlirValue tensor, int rank,
                       const MlirValue *position);
/* The first |size| positions of |tensor| along |axis|, whose type shows `?` there. */
MlirValue o3_lw_first(o3_builder_t *builder, MlirValue tensor, int axis, MlirValue size);

#endif
