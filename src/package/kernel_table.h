/* The kernels that a back end lists in the module's o3.kernels, for profiles. */
#ifndef O3_PACKAGE_KERNEL_TABLE_H
#define O3_PACKAGE_KERNEL_TABLE_H

#include "base/arena.h"
#include "ir/ir.h"

/* See o3rt_kernel_t (runtime/compiled.h). */
typedef struct o3_kernel_row {
  const char *name, *kind;
  int num_nodes;
  const char *const *nodes;
} o3_kernel_row_t;

typedef struct o3_kernel_table {
  int count;
  const o3_kernel_row_t *rows;
} o3_kernel_table_t;

/* Everything is allocated in |arena|. No attribute is an empty table; INTERNAL when it is malformed. */
o3_status_t o3_kernel_table_read(o3_arena_t *arena, MlirModule module, o3_kernel_table_t *table) O3_MUST_USE;

#endif
