/* The scalar body of a linalg.generic at vector width. */
#ifndef O3_TARGET_CPU_VECTOR_BODY_H
#define O3_TARGET_CPU_VECTOR_BODY_H

#include "target/cpu/nest.h"

/* Whether the body is arith ops on scalars alone. */
bool o3_vector_body_fits(const o3_nest_t *nest);

/* Clones the body for |width| elements at once: |arguments| are vectors of that many for its block arguments.
 * Gives what it yields. */
o3_status_t o3_vector_body_build(const o3_nest_t *nest, o3_builder_t *builder, int width,
                                 const MlirValue *arguments, MlirValue *yields) O3_MUST_USE;

/* The same for bodies that also read positions, and elements by them: |dim| of the nest is the lanes, along
 * which elements are either one or lie beside each other; |ivs| are the places in the other dims. */
bool o3_vector_body_fits_along(const o3_nest_t *nest, int dim);
o3_status_t o3_vector_body_build_along(const o3_nest_t *nest, int dim, const MlirValue *ivs,
                                       o3_builder_t *builder, int width, const MlirValue *arguments,
                                       MlirValue *yields) O3_MUST_USE;

/* A vector of |width| times |scalar|. */
MlirValue o3_vector_broadcast(o3_builder_t *builder, int width, MlirValue scalar);

/* vector<|width| x |element|> */
MlirType o3_vector_type(int width, MlirType element);

#endif
