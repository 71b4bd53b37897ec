/* The threads of one session. One thread at a time gives it work; that thread takes part. */
#ifndef O3_RUNTIME_THREAD_POOL_H
#define O3_RUNTIME_THREAD_POOL_H

#include <stdint.h>

#include "compiled.h"

#define O3RT_MAX_THREADS 1024

typedef struct o3rt_pool o3rt_pool_t;

/* CPUs that the calling thread may use, at most O3RT_MAX_THREADS; 0 when the system does not tell. */
int32_t o3rt_cpu_count(void);

/* |threads| (1 ... O3RT_MAX_THREADS) counts the caller, so threads - 1 are started. An idle worker spins for
 * |spin_us| microseconds (>= 0) before it sleeps. 0, or the system's error number with *pool = NULL. */
int o3rt_pool_create(int32_t threads, int32_t spin_us, o3rt_pool_t **pool);

/* Ends the threads. NULL is allowed. */
void o3rt_pool_destroy(o3rt_pool_t *pool);

/* The contract of o3rt_parallel_for. */
void o3rt_pool_run(o3rt_pool_t *pool, o3rt_body_fn_t body, void *context, int64_t count, int64_t grain);

#endif
