/* How long each kernel of a run takes. One clock for all: a kernel lasts until the next one starts. */
#ifndef O3_RUNTIME_PROFILE_H
#define O3_RUNTIME_PROFILE_H

#include "../include/o3/model.h"

typedef struct o3rt_profile o3rt_profile_t;

/* NULL when memory is out. */
o3rt_profile_t *o3rt_profile_create(int32_t num_kernels);
void o3rt_profile_destroy(o3rt_profile_t *profile); /* NULL is allowed */

/* A run starts (what is known of the last is forgotten), kernel |kernel| starts, the run ends. */
void o3rt_profile_start(o3rt_profile_t *profile);
void o3rt_profile_begin(o3rt_profile_t *profile, int32_t kernel, int64_t operations, int64_t bytes);
void o3rt_profile_end(o3rt_profile_t *profile);
/* Adds to a kernel's time, for a driver that measures on the card; |kernel| may be O3_NO_KERNEL. */
void o3rt_profile_add(o3rt_profile_t *profile, int32_t kernel, int64_t nanoseconds);
/* Forgets the times that the clock of the host gave. */
void o3rt_profile_clear_times(o3rt_profile_t *profile);

/* Of the last run; |kernel| may be O3_NO_KERNEL. Borrowed. */
const o3_kernel_sample_t *o3rt_profile_sample(const o3rt_profile_t *profile, int32_t kernel);

#endif
