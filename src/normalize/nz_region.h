/* Branches and loops in the normalized module: scf.if, scf.for and scf.while on tensors.
 *
 * Their bodies are converted into blocks of their own. Sizes that are the same in both branches, or in all
 * iterations, keep their expressions; others become data symbols: those of a result are defined by the op,
 * those of a value that a loop carries by the block arguments (attributes of the loop op: o3.arg_shapes, one
 * map for each block argument, and o3.iteration, the number of the symbol that counts iterations from 0).
 */
#ifndef O3_NORMALIZE_NZ_REGION_H
#define O3_NORMALIZE_NZ_REGION_H

#include "normalize/nz.h"

enum { O3_NZ_MAX_CARRIED = O3_NODE_MAX_OUTPUTS };

/* Converts one branch: writes its results, at most O3_NZ_MAX_CARRIED, and their number. */
typedef o3_status_t (*o3_nz_branch_fn_t)(o3_nz_t *nz, void *context, bool taken, MlirValue *results,
                                         int *count);

/* Runs one of two branches by |condition|, a boolean tensor of one element. Both must give the same number of
 * results with equal element types and ranks. */
o3_status_t o3_nz_branch(o3_nz_t *nz, MlirValue condition, o3_nz_branch_fn_t convert, void *context,
                         MlirValue *results, int *count) O3_MUST_USE;

/* One iteration under conversion. */
typedef struct o3_nz_iteration {
  MlirAffineExpr number; /* iterations done before this one, a data symbol */
  MlirValue condition;   /* the condition that let this iteration run; scalar i1 */
  const MlirValue *carried;
  MlirValue *next;          /* to be filled: the carried values for the next iteration */
  MlirValue *scans;         /* to be filled: what this iteration adds to the scan results */
  MlirValue next_condition; /* to be filled where the loop may end early; null goes on */
} o3_nz_iteration_t;

typedef o3_status_t (*o3_nz_iterate_fn_t)(o3_nz_t *nz, void *context, o3_nz_iteration_t *iteration);

/* Where the slices that iterations add to a scan result go: along |axis| of the result (negative: from its
 * end), last one first when |reverse|. */
typedef struct o3_nz_scan {
  int axis;
  bool reverse;
} o3_nz_scan_t;

typedef struct o3_nz_loop {
  MlirAffineExpr trip; /* the most iterations; null: no bound. Not negative. */
  MlirValue condition; /* boolean of one element: whether the first iteration runs; null: it does */
  int num_carried;
  const MlirValue *inits;
  int num_scans;
  const o3_nz_scan_t *scans;
  o3_nz_iterate_fn_t body; /* called again when sizes turn out to change between iterations */
  void *context;
} o3_nz_loop_t;

/* |results| gets the carried values after the last iteration, then the scan results. */
o3_status_t o3_nz_loop(o3_nz_t *nz, const o3_nz_loop_t *loop, MlirValue *results) O3_MUST_USE;

/* A boolean whose value is known while compiling. */
bool o3_nz_is_known_bool(const o3_nz_t *nz, MlirValue value, bool *known);

#endif
