/* Bodies of a nest for several elements at once. */
#ifndef O3_TARGET_NVPTX_LANE_BODY_H
#define O3_TARGET_NVPTX_LANE_BODY_H

#include "target/cpu/nest.h"

enum { O3_LANES_MOST = 32 };

/* |count| elements, in groups of |vector| that follow each other along |dim|. */
typedef struct o3_lanes {
  const o3_nest_t *nest;
  int count, vector, dim;
  MlirValue (*ivs)[O3_IR_MAX_RANK]; /* of each element */
} o3_lanes_t;

/* Lets the ops of the body take the card's fast instructions where what it yields is in half precision. */
o3_status_t o3_lanes_relax(const o3_nest_t *nest) O3_MUST_USE;

/* Whether the body loads from places that depend on |dim| and are no neighbours for |count| elements along
 * it. */
o3_status_t o3_lanes_scatter(const o3_nest_t *nest, int dim, int count, bool *scattered) O3_MUST_USE;

/* Whether the body loads from places that it has loaded, as gathers do. */
o3_status_t o3_lanes_follow(const o3_nest_t *nest, bool *follows) O3_MUST_USE;

/* |count| elements that start at |indices|, as one vector. */
MlirValue o3_lanes_load(o3_builder_t *builder, MlirValue memref, int num_indices, const MlirValue *indices,
                        int count);
/* The elements of a vector. */
void o3_lanes_split(o3_builder_t *builder, MlirValue vector, int count, MlirValue *elements);
void o3_lanes_store(o3_builder_t *builder, MlirValue memref, MlirValue index, int count,
                    const MlirValue *elements);

/* Clones the body for all elements: |arguments| of each, |yields| of each. What is the same for a group is
 * computed once, and what a group loads from neighbouring places is loaded at once. */
o3_status_t o3_lanes_clone(const o3_lanes_t *lanes, o3_builder_t *builder,
                           MlirValue (*arguments)[O3_LANES_MOST], MlirValue *yields) O3_MUST_USE;

#endif
