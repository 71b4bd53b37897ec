/* Peaks: what this machine can do at most, measured, to tell how good a kernel is. */
#ifndef O3_SCHEDULE_PEAKS_H
#define O3_SCHEDULE_PEAKS_H

#include <stdint.h>

#include "base/status.h"

/* Of the caches that have more than a thread's first one: the second level, then the third. */
enum { O3_PEAKS_CACHES = 2 };

typedef struct o3_peaks_cache {
  int64_t bytes;     /* of all caches of the level that the threads use; 0: not measured */
  double copy_bytes; /* a second, read and written, between buffers that fill half of them */
} o3_peaks_cache_t;

typedef struct o3_peaks {
  double fma_flops;  /* a second, f32, an FMA is two; the widest vectors, or AVX2's if these are faster */
  double copy_bytes; /* a second, read and written, between buffers larger than the caches */
  o3_peaks_cache_t caches[O3_PEAKS_CACHES];
} o3_peaks_t;

/* CPUs that the process may use; 1 when the system does not tell. */
int32_t o3_peaks_cpu_count(void);

/* Of the third-level cache that the cores here share; |fallback| when the system does not tell. */
int64_t o3_peaks_shared_cache_bytes(int64_t fallback);

/* Measures with |threads| threads at once (>= 1); takes a second at most. OUT_OF_MEMORY, or UNSUPPORTED
 * when threads cannot be started. */
o3_status_t o3_peaks_measure(int32_t threads, o3_peaks_t *peaks) O3_MUST_USE;

/* How many FMAs on vectors of |vector_bytes| a core starts in a cycle, 1 or 2, measured in about 0.2 s; 1
 * where there are no such instructions. */
int o3_peaks_fma_ports(int vector_bytes);

#endif
