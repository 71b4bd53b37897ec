/* Generic kernels whose threads compute several elements of a result each: a vector along its last dimension,
 * which memory is read and written in pieces of up to 16 bytes for, and groups of such vectors apart from
 * each other, whose loads are in flight together.
 *
 * Ops are nests of one result, sizes known, that hand elements from one to the next: what a product's sums
 * start at, the sums, what is done with them. Sums are loops of the thread over the dims that have no place.
 * Where sums are long, results few and neighbours of a result are neighbours in what is summed, threads of a
 * block share them.
 */
#ifndef O3_TARGET_NVPTX_LANE_KERNEL_H
#define O3_TARGET_NVPTX_LANE_KERNEL_H

#include "target/nvptx/thread_code.h"

typedef struct o3_lane_ops {
  int count;
  o3_nest_t *nests;                       /* flattened */
  const int (*positions)[O3_IR_MAX_RANK]; /* for each op: its dim that walks place r, or -1 */
  const o3_flat_dims_t *places;           /* an element's place; the last one is the fastest */
} o3_lane_ops_t;

/* Of a thread: |groups| vectors of |vector| elements. Or |parts| threads of a block have one vector each and
 * share out the terms of its sums. */
typedef struct o3_lane_plan {
  int vector, groups, parts;
  int threads; /* of a block */
} o3_lane_plan_t;

/* Elements of the result that a block has. */
int64_t o3_lanes_a_block(const o3_lane_plan_t *plan);

/* The best plan on a card of |multiprocessors|; |why_not|: why the ops have no such kernel, static text, or
 * NULL. */
o3_status_t o3_lanes_plan(const o3_lane_ops_t *ops, int multiprocessors, o3_lane_plan_t *plan,
                          const char **why_not) O3_MUST_USE;

/* Builds the launch; gives it. */
o3_status_t o3_lanes_build(const o3_lane_ops_t *ops, const o3_lane_plan_t *plan, o3_builder_t *builder,
                           MlirOperation *launch) O3_MUST_USE;

#endif
