/* What a kernel of columns does, read from its linalg ops; see column_kernel.h. */
#ifndef O3_TARGET_NVPTX_COLUMN_PLAN_H
#define O3_TARGET_NVPTX_COLUMN_PLAN_H

#include "target/cpu/nest.h"
#include "target/nvptx/column_kernel.h"

enum { O3_COLUMN_MAX_OPS = 16, O3_COLUMN_MAX_OPERANDS = 8, O3_COLUMN_MAX_ELEMENTS = 32 };

/* The dimensions of a kernel as three: those before what is reduced, that, and those behind. */
typedef enum o3_column_axis {
  O3_COLUMN_OUTER,
  O3_COLUMN_ALONG,
  O3_COLUMN_INNER,
  O3_COLUMN_AXES
} o3_column_axis_t;

typedef struct o3_column_operand {
  int value;                     /* index into the plan's values */
  int64_t steps[O3_COLUMN_AXES]; /* elements, along each axis */
  bool used;                     /* the body reads it */
} o3_column_operand_t;

typedef struct o3_column_op {
  o3_nest_t *nest;
  bool whole;           /* over all elements; else once a column */
  const char *combiner; /* of a reduction, else NULL */
  int num_operands;     /* the last is the result */
  o3_column_operand_t operands[O3_COLUMN_MAX_OPERANDS];
} o3_column_op_t;

/* A buffer or tensor: an argument, or the kernel's own, which is registers only. */
typedef struct o3_column_value {
  MlirValue key;
  int argument; /* of a kernel on buffers, or -1 */
  o3_gpu_element_t element;
  bool written, whole;
  int64_t steps[O3_COLUMN_AXES]; /* as it was written */
} o3_column_value_t;

typedef struct o3_column_plan {
  int64_t sizes[O3_COLUMN_AXES];
  int num_ops, num_values, num_reductions;
  o3_column_op_t ops[O3_COLUMN_MAX_OPS];
  o3_column_value_t values[O3_COLUMN_MAX_OPS * 2];
  int vector;       /* columns of a thread, neighbours */
  int lanes, parts; /* threads of a block: beside each other, and along the columns */
  int chunks;       /* elements of each of a thread's columns that it has in registers at a time */
  int turns;        /* so many times: more than once where the kernel gives nothing but sums of columns */
} o3_column_plan_t;

/* Fills |plan| from |ops|, on buffers or on tensors; |site|: the kernel's, NULL for tensors. Gives why
 * they are no columns that registers can hold, nor sums of columns alone, or NULL. */
const char *o3_column_plan(o3_arena_t *arena, int num_ops, const MlirOperation *ops,
                           const o3_kernel_site_t *site, int multiprocessors, o3_column_plan_t *plan);

#endif
