/* Times of kernels on the card: an event where each starts; the time to the next one is its. */
#ifndef O3_RUNTIME_CUDA_MARKS_H
#define O3_RUNTIME_CUDA_MARKS_H

#include "../../profile.h"
#include "cuda_api.h"

typedef struct o3rt_cuda_mark {
  cuda_event_t event;
  int32_t kernel;
} o3rt_cuda_mark_t;

typedef struct o3rt_cuda_marks {
  o3rt_cuda_mark_t *items; /* |made| have an event, |count| are of this run */
  int32_t count, made, capacity;
  int code; /* the first CUresult that was no success: the run has no times */
} o3rt_cuda_marks_t;

/* A run starts. */
void o3rt_cuda_marks_start(o3rt_cuda_marks_t *marks);
/* What comes next in |stream| belongs to |kernel| (O3_NO_KERNEL: to none). */
void o3rt_cuda_marks_add(o3rt_cuda_marks_t *marks, const o3rt_cuda_api_t *api, cuda_stream_t stream,
                         int32_t kernel);
/* The stream has come to its end: adds the times to |profile|. A CUresult. */
int o3rt_cuda_marks_read(const o3rt_cuda_marks_t *marks, const o3rt_cuda_api_t *api, o3rt_profile_t *profile);
void o3rt_cuda_marks_free(o3rt_cuda_marks_t *marks, const o3rt_cuda_api_t *api);

#endif
