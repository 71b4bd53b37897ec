/* What is known of the ops of a kernel of rows from one another. */
#ifndef O3_TARGET_CPU_ROW_MARKS_H
#define O3_TARGET_CPU_ROW_MARKS_H

#include "target/cpu/kernel_call.h"

/* Writes O3_CPU_NOT_POSITIVE on each exponential of x - m, where an op before made m, and nothing else did,
 * the greatest of the same x. */
void o3_row_marks_set(const o3_inlined_t *inlined);

#endif
