/* Loops of one linalg op inside other loops: what cpu-loops does, for the kernels of the fuse stage. */
#ifndef O3_TARGET_CPU_LOOPS_H
#define O3_TARGET_CPU_LOOPS_H

#include "target/cpu/nest.h"

/* Which iterations of a nest to run. */
typedef struct o3_loops_frame {
  bool fixed[O3_IR_MAX_RANK];    /* dims that have a place already ... */
  MlirValue ivs[O3_IR_MAX_RANK]; /* ... this one */
  int ranged; /* a parallel dim that becomes the innermost loop, from |lower| to |upper|; or -1 */
  MlirValue lower, upper;
} o3_loops_frame_t;

/* Builds the loops over the dims that are not fixed, on the running thread. The nest is read, its dims merged
 * and flattened; a dim that is fixed is not merged. */
o3_status_t o3_loops_build(o3_nest_t *nest, o3_builder_t *builder, const o3_loops_frame_t *frame) O3_MUST_USE;

/* An o3_visit_fn_t whose context is a nest (o3_nest_t): lets float ops of its body be contracted, and those
 * of a reduction reordered. */
o3_status_t o3_loops_relax(MlirOperation op, void *nest) O3_MUST_USE;

/* A rough number of operations of the loops that o3_loops_build makes. */
int64_t o3_loops_work(const o3_nest_t *nest, const bool *fixed);

#endif
