/* Which format each weight got, and why: for people and for programs. */
#ifndef O3_DRIVER_SPARSE_REPORT_H
#define O3_DRIVER_SPARSE_REPORT_H

#include <stdio.h>

#include "analysis/sparse_choice.h"

/* A table with a total. */
void o3_sparse_report_print(FILE *stream, const o3_sparse_report_t *report);

/* The same with all numbers, as JSON, to the file |path|, whole or not at all. docs/howto/sparse-models.md
 * says what the fields are. */
o3_status_t o3_sparse_report_write(const char *path, const char *model, const o3_sparse_report_t *report)
    O3_MUST_USE;

#endif
