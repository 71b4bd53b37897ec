/* What a kernel of rows does, read from its linalg ops; see row_kernel.h. */
#ifndef O3_TARGET_NVPTX_ROW_PLAN_H
#define O3_TARGET_NVPTX_ROW_PLAN_H

#include "target/cpu/nest.h"
#include "target/nvptx/row_gather.h"
#include "target/nvptx/row_kernel.h"

/* Threads of a block of short rows, and pieces of 16 bytes that each of them moves through shared memory. */
enum {
  O3_ROW_BLOCK = 128,
  O3_ROW_STAGE_BYTES = 32768,
  O3_ROW_STAGE_PIECES = O3_ROW_STAGE_BYTES / 16 / O3_ROW_BLOCK
};

enum { O3_ROW_MAX_OPS = 24, O3_ROW_MAX_OPERANDS = 8, O3_ROW_INDEX = -1 };

/* A buffer as an op sees it. */
typedef struct o3_row_operand {
  int value;                     /* index into the plan's values; O3_ROW_INDEX: integers that make indices */
  int argument;                  /* of those */
  int64_t steps[O3_IR_MAX_RANK]; /* elements, for each dimension of the plan */
  bool used;                     /* the body reads it */
} o3_row_operand_t;

typedef struct o3_row_op {
  o3_nest_t *nest;
  bool whole;           /* over the elements of the rows; else once a row */
  const char *combiner; /* of a reduction, else NULL */
  int num_operands;     /* the last is the result */
  o3_row_operand_t operands[O3_ROW_MAX_OPERANDS];
  o3_row_gathers_t gathers;
  int tables[O3_ROW_MAX_GATHERS]; /* values that these read */
} o3_row_op_t;

/* A buffer: an argument, or the kernel's own, which is registers only. */
typedef struct o3_row_value {
  MlirValue buffer;
  int argument; /* or -1 */
  o3_gpu_element_t element;
  bool written, whole; /* by an op, over the rows' elements */
  bool read, rows;     /* before it is written; all uses are rows that lie one behind the other */
  int64_t steps[O3_IR_MAX_RANK];
  int stage; /* bytes from the start of shared memory to the block's rows of it, or -1: row_stage.h */
} o3_row_value_t;

typedef struct o3_row_plan {
  int rank, column_dims; /* the last |column_dims| of |sizes| make a row */
  int64_t sizes[O3_IR_MAX_RANK];
  int64_t rows, columns;
  int num_ops, num_values, num_reductions;
  o3_row_op_t ops[O3_ROW_MAX_OPS];
  o3_row_value_t values[O3_ROW_MAX_OPS * 2];
  int vector;      /* elements that a thread loads at once */
  int threads;     /* of a row: a power of 2 up to a warp, or a block */
  int chunks;      /* vectors of a thread */
  bool few;        /* rows, so that a thread has registers to spare */
  int stage_bytes; /* of shared memory, for rows that pass through it; 0 for none */
} o3_row_plan_t;

/* Fills |plan|; gives why the ops are no rows that registers can hold, or NULL. */
const char *o3_row_plan(const o3_kernel_site_t *site, o3_row_plan_t *plan);

/* Whether the operand has an element for each column; whether it differs from row to row. */
bool o3_row_varies(const o3_row_plan_t *plan, const o3_row_operand_t *operand);
bool o3_row_differs(const o3_row_plan_t *plan, const o3_row_operand_t *operand);

#endif
