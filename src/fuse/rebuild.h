/* Building a linalg.generic on tensors from the bodies of others.
 *
 *     o3_rebuild_t r = {.like = consumer, .out = out};
 *     ... inputs and maps
 *     O3_TRY(o3_rebuild_begin(&r, arena));
 *     O3_TRY(o3_rebuild_clone(&r, producer_body, producer_args, &loops, &value));
 *     O3_TRY(o3_rebuild_clone(&r, consumer_body, consumer_args, NULL, &value));
 *     o3_rebuild_finish(&r, value);
 */
#ifndef O3_FUSE_REBUILD_H
#define O3_FUSE_REBUILD_H

#include "analysis/dependence.h"
#include "ir/build.h"

typedef struct o3_rebuild {
  const o3_dep_generic_t *like; /* whose loops, location and attributes the new op takes; it is replaced */
  int num_inputs;
  MlirValue inputs[O3_DEP_MAX_OPERANDS];
  MlirAffineMap maps[O3_DEP_MAX_OPERANDS]; /* the inputs' */
  MlirValue out;                           /* initial value */
  MlirAffineMap out_map;
  /* Set by begin: */
  o3_arena_t *arena;
  MlirBlock block; /* an argument for each input, then the initial value */
} o3_rebuild_t;

/* Adds an input, once for equal ones; its place, or -1 when there are too many. */
int o3_rebuild_input(o3_rebuild_t *rebuild, MlirValue value, MlirAffineMap map);

/* Whether each loop's length is known: linalg finds it in an operand that the loop alone walks. */
bool o3_rebuild_knows_loops(const o3_rebuild_t *rebuild);

o3_status_t o3_rebuild_begin(o3_rebuild_t *rebuild, o3_arena_t *arena) O3_MUST_USE;

/* Clones |body| to the end of the new one, |args| for its arguments, positions through |loops| (a map from
 * the new op's loops to those of the body's op; NULL: the same); |result| is what it yields. */
o3_status_t o3_rebuild_clone(o3_rebuild_t *rebuild, MlirBlock body, const MlirValue *args,
                             const MlirAffineMap *loops, MlirValue *result) O3_MUST_USE;

/* Makes the op before |like|, with loops of its own kind. */
MlirOperation o3_rebuild_build(o3_rebuild_t *rebuild, MlirValue result, MlirAttribute iterator_types);

/* Makes the op in the place of |like|, which is destroyed. */
MlirOperation o3_rebuild_finish(o3_rebuild_t *rebuild, MlirValue result);

#endif
