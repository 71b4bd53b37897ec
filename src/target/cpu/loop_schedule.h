/* How cpu-loops runs one op: which of its dims is the innermost loop, and what a task takes of it. */
#ifndef O3_TARGET_CPU_LOOP_SCHEDULE_H
#define O3_TARGET_CPU_LOOP_SCHEDULE_H

#include "schedule/cpu_schedule.h"
#include "target/cpu/nest.h"

/* What |nest|, merged, says in o3.schedule or gets; its dims are none that are merged into others.
 * INVALID_ARGUMENT as o3_schedule_read, and when loops of that form would be wrong. */
o3_status_t o3_loop_schedule_read(const o3_machine_t *machine, const o3_nest_t *nest,
                                  o3_schedule_loops_t *schedule) O3_MUST_USE;

/* Writes o3.schedule on |op|, a linalg.generic on tensors or buffers. Leaves alone what is no loop nest. */
o3_status_t o3_loop_schedule_write(o3_pass_env_t *env, MlirOperation op) O3_MUST_USE;

/* The dim that suits the innermost loop best, of those that are not |fixed|; -1 when there is none. */
int o3_loop_schedule_inner(const o3_nest_t *nest, const bool *fixed);

/* Whether results are written at each step of a reduction, as those of a running sum are. */
bool o3_loop_schedule_shows_sums(const o3_nest_t *nest);

#endif
