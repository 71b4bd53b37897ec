/* Equal shares of a sparse product's work. */
#ifndef O3_TARGET_CPU_SPARSE_SHARE_H
#define O3_TARGET_CPU_SPARSE_SHARE_H

#include "target/cpu/nest.h"

/* Rows of entries, |group| at a time, split into parts of nearly equal work. */
typedef struct o3_sparse_share {
  const o3_nest_operand_t *rows; /* flattened; the limits of the entries, one more than there are rows */
  int64_t num_rows;              /* at least one */
  int64_t group;                 /* rows that stay together: every part begins at a multiple */
  int64_t row_cost;              /* of a row without entries, in entries */
  int64_t parts;
} o3_sparse_share_t;

/* How many parts of at least |least| entries' work there are to be, at most |most|. |entries|: of all rows.
 */
int64_t o3_sparse_share_parts(const o3_sparse_share_t *share, int64_t entries, int64_t least, int64_t most);

/* The first row of part |part| (index, up to and with |parts|, which gives the number of rows rounded up to
 * whole groups). */
MlirValue o3_sparse_share_start(const o3_sparse_share_t *share, o3_builder_t *builder, MlirValue part);

#endif
