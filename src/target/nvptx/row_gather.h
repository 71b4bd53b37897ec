/* Rows of tables: an op of a kernel of rows may read elements [index, column] of a table, where the index of
 * a row is computed from integers that are the same for the whole row, as embeddings are. */
#ifndef O3_TARGET_NVPTX_ROW_GATHER_H
#define O3_TARGET_NVPTX_ROW_GATHER_H

#include "target/nvptx/body_text.h"

/* Of an op: what its body reads of tables, and the ops that compute the indices, from the last to the first.
 */
enum { O3_ROW_MAX_GATHERS = 4 };
typedef struct o3_row_gathers {
  int count;
  MlirOperation loads[O3_ROW_MAX_GATHERS];
  o3_body_bound_t bound; /* the loads and the indices' ops */
} o3_row_gathers_t;

/* Finds them; gives why the body reads memory in another way, or NULL. |column|: the loop of the columns. */
const char *o3_row_gathers_find(const o3_nest_t *nest, int column, o3_row_gathers_t *gathers);

/* Writes the indices' ops for |arguments|, i64 values of the body's integer arguments; rows[i] becomes the
 * i32 number of the table's row that load i reads. */
void o3_row_gathers_write(o3_kernel_text_t *t, const o3_row_gathers_t *gathers, const int *arguments,
                          int rows[O3_ROW_MAX_GATHERS]);

#endif
