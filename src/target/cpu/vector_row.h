/* An elementwise op along one of its dims, in explicit vectors. */
#ifndef O3_TARGET_CPU_VECTOR_ROW_H
#define O3_TARGET_CPU_VECTOR_ROW_H

#include "target/cpu/nest.h"

/* Whether the op is arithmetic on f32 that is contiguous along |dim| or the same for all of it. */
bool o3_vector_row_fits(const o3_nest_t *nest, int dim);

typedef struct o3_vector_row {
  const o3_nest_t *nest; /* flattened */
  int dim, lanes;
  const MlirValue *ivs;   /* of the op's dims; that of |dim| is not read */
  MlirValue lower, upper; /* of |dim| */
} o3_vector_row_t;

/* Builds it for one row. |greatest|: NULL, or what becomes the greatest result, -inf without one; NaNs do not
 * count. */
o3_status_t o3_vector_row_build(const o3_vector_row_t *row, o3_builder_t *builder, MlirValue *greatest)
    O3_MUST_USE;

#endif
