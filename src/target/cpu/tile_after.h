/* What follows a product, inside of its register tile: on the sums before they are stored. */
#ifndef O3_TARGET_CPU_TILE_AFTER_H
#define O3_TARGET_CPU_TILE_AFTER_H

#include "target/cpu/nest.h"

/* Whether the op computes each element of its buffer from that element and constants alone. Constants from
 * outside of its body are copied into it. */
bool o3_tile_after_fits(const o3_nest_t *nest);

/* Of |before|, the hash of the ops before, and this one's body; never 0. Equal bodies have equal ones. */
uint64_t o3_tile_after_hash(uint64_t before, const o3_nest_t *nest);

/* Puts the op's body before each vector.store of the function |tile|, for |lanes| elements at once. */
o3_status_t o3_tile_after_insert(MlirOperation tile, int lanes, const o3_nest_t *nest) O3_MUST_USE;

#endif
