/* Places for buffers in one arena: two that live at the same time do not overlap. */
#ifndef O3_TARGET_CPU_PACK_INTERVALS_H
#define O3_TARGET_CPU_PACK_INTERVALS_H

#include <stdint.h>

#include "base/arena.h"

typedef struct o3_interval {
  int64_t size;        /* >= 0, any unit */
  int64_t first, last; /* it lives from the step |first| to the step |last|, both included */
  int64_t offset;      /* result */
} o3_interval_t;

/* Sets the offsets; |total| is the end of the highest one. Sizes must not sum up beyond int64_t.
 * Greedy best fit (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), by
 * size and by time, the better of both. */
o3_status_t o3_intervals_pack(o3_arena_t *arena, o3_interval_t *intervals, int count, int64_t *total)
    O3_MUST_USE;

/* The largest sum of sizes that live at the same time: no packing takes less. */
int64_t o3_intervals_live_max(const o3_interval_t *intervals, int count);

#endif
