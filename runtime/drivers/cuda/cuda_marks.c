#include "cuda_marks.h"

#include <stdlib.h>

void o3rt_cuda_marks_start(o3rt_cuda_marks_t *marks) {
  marks->count = 0;
  marks->code = CUDA_OK;
}

static o3rt_cuda_mark_t *next_mark(o3rt_cuda_marks_t *marks, const o3rt_cuda_api_t *api) {
  if (marks->count == marks->capacity) {
    int32_t capacity = marks->capacity ? 2 * marks->capacity : 256;
    o3rt_cuda_mark_t *items = realloc(marks->items, (size_t)capacity * sizeof *items);
    marks->code = items ? CUDA_OK : CUDA_OUT_OF_MEMORY;
    if (!items) return NULL;
    marks->items = items;
    marks->capacity = capacity;
  }
  if (marks->count == marks->made) {
    marks->code = api->event_create(&marks->items[marks->made].event, 0);
    if (marks->code != CUDA_OK) return NULL;
    ++marks->made;
  }
  return &marks->items[marks->count++];
}

void o3rt_cuda_marks_add(o3rt_cuda_marks_t *marks, const o3rt_cuda_api_t *api, cuda_stream_t stream,
                         int32_t kernel) {
  if (marks->code != CUDA_OK) return;
  o3rt_cuda_mark_t *mark = next_mark(marks, api);
  if (!mark) return;
  mark->kernel = kernel;
  marks->code = api->event_record(mark->event, stream);
}

int o3rt_cuda_marks_read(const o3rt_cuda_marks_t *marks, const o3rt_cuda_api_t *api,
                         o3rt_profile_t *profile) {
  int code = marks->code;
  o3rt_profile_clear_times(profile);
  for (int32_t i = 0; code == CUDA_OK && i + 1 < marks->count; ++i) {
    float milliseconds = 0;
    code = api->event_elapsed(&milliseconds, marks->items[i].event, marks->items[i + 1].event);
    if (code == CUDA_OK)
      o3rt_profile_add(profile, marks->items[i].kernel, (int64_t)((double)milliseconds * 1e6));
  }
  return code;
}

void o3rt_cuda_marks_free(o3rt_cuda_marks_t *marks, const o3rt_cuda_api_t *api) {
  for (int32_t i = 0; i < marks->made; ++i) (void)api->event_destroy(marks->items[i].event);
  free(marks->items);
  *marks = (o3rt_cuda_marks_t){0};
}
