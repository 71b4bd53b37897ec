/* What constant folding computes, in parts that have nothing to do with each other, and which of them are the
 * same work on other numbers. */
#ifndef O3_REWRITE_FOLD_PARTS_H
#define O3_REWRITE_FOLD_PARTS_H

#include "base/map.h"
#include "ir/ir.h"
#include "ir/weights.h"

/* What is computed at once is in memory twice: results of so many bytes at most, or one op's. */
#define O3_FOLD_MAX_BYTES ((int64_t)12 << 20)
/* Nor are there more ops: LLVM's time for a function of so many results grows with their square. */
#define O3_FOLD_MAX_OPS 128

/* Ops whose operands are constants or results of each other, in the order of the module. */
typedef struct o3_fold_part {
  o3_ptr_vec_t ops;
  int64_t bytes;       /* of the ops' results */
  o3_ptr_vec_t inputs; /* values: the constants whose data are the store's, in the order of their reading */
  o3_ptr_vec_t roots;  /* values: results that other ops read */
} o3_fold_part_t;

/* Parts that differ in their inputs' data alone; the first stands for all. */
typedef struct o3_fold_kind {
  o3_ptr_vec_t parts; /* o3_fold_part_t */
} o3_fold_kind_t;

/* The kinds (o3_fold_kind_t) of all that can be computed in |module| now, but for parts that would pass the
 * limits: what reads these is found again when they are constants. Allocated in |arena|. */
o3_status_t o3_fold_kinds_find(o3_arena_t *arena, o3_weights_t *weights, MlirModule module,
                               o3_ptr_vec_t *kinds) O3_MUST_USE;

#endif
