/* Rows that pass through shared memory: those of a block lie there one behind the other, as in global memory,
 * which is read and written in pieces of 16 bytes whatever the length of a row.
 */
#ifndef O3_TARGET_NVPTX_ROW_STAGE_H
#define O3_TARGET_NVPTX_ROW_STAGE_H

#include "target/nvptx/kernel_text.h"
#include "target/nvptx/row_plan.h"

/* Values of the kernel's text. */
typedef struct o3_row_stage {
  o3_kernel_text_t *t;
  const o3_row_plan_t *plan;
  int shared; /* pointer */
  int thread, block;
} o3_row_stage_t;

/* Fetches the block's rows of all arguments that are read, and waits for all of the block's threads. Rows
 * behind the last one are there, too, but not their numbers. */
void o3_row_stage_load(const o3_row_stage_t *stage);
/* Stores the block's rows of the arguments that are written, once all threads have put theirs there. */
void o3_row_stage_store(const o3_row_stage_t *stage);

#endif
