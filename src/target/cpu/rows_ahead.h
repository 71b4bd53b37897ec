/* While a row is computed, what the next one reads is asked for. */
#ifndef O3_TARGET_CPU_ROWS_AHEAD_H
#define O3_TARGET_CPU_ROWS_AHEAD_H

#include "schedule/cpu_schedule.h"
#include "target/cpu/kernel_call.h"

enum { O3_ROWS_AHEAD_MOST = 4 };

/* The next row's operands, and the op whose loop along the row asks for them. */
typedef struct o3_rows_ahead {
  int op;                                                        /* of the kernel's, -1: none */
  int count;                                                     /* of operands */
  MlirValue flat[O3_ROWS_AHEAD_MOST], first[O3_ROWS_AHEAD_MOST]; /* memref; index of the first element */
  int64_t size, block, level;                                    /* elements of a row; the schedule's */
} o3_rows_ahead_t;

/* Reads op |index| of a kernel as loops inside of a row. */
o3_status_t o3_rows_read_op(const o3_rows_t *rows, int index, o3_nest_t *nest) O3_MUST_USE;

/* The op with the most exponentials or the like, if any has, and the addresses for |rows|' ivs. */
o3_status_t o3_rows_ahead_find(const o3_rows_t *rows, const o3_schedule_rows_t *schedule,
                               o3_builder_t *builder, o3_rows_ahead_t *ahead) O3_MUST_USE;

/* o3_loops_build of that op, in blocks that ask first. */
o3_status_t o3_rows_ahead_build(const o3_rows_ahead_t *ahead, o3_builder_t *builder, o3_nest_t *nest,
                                const o3_loops_frame_t *frame) O3_MUST_USE;

#endif
