#include "cuda_graph.h"

#include <stdlib.h>
#include <string.h>

static void forget(o3rt_cuda_recorded_t *item, const o3rt_cuda_api_t *api) {
  if (item->exec) (void)api->graph_exec_destroy(item->exec);
  free(item->key);
  free(item->results);
  *item = (o3rt_cuda_recorded_t){0};
}

o3rt_cuda_recorded_t *o3rt_cuda_graphs_find(o3rt_cuda_graphs_t *graphs, const int64_t *key, size_t words) {
  for (int i = 0; i < O3RT_CUDA_GRAPHS; ++i) {
    o3rt_cuda_recorded_t *item = &graphs->items[i];
    if (!item->key || memcmp(item->key, key, words * sizeof *key) != 0) continue;
    item->used = ++graphs->clock;
    return item;
  }
  return NULL;
}

void o3rt_cuda_graphs_note(o3rt_cuda_graphs_t *graphs, const o3rt_cuda_api_t *api, int64_t *key) {
  o3rt_cuda_recorded_t *oldest = &graphs->items[0];
  for (int i = 1; i < O3RT_CUDA_GRAPHS; ++i)
    if (graphs->items[i].used < oldest->used) oldest = &graphs->items[i];
  forget(oldest, api);
  oldest->key = key;
  oldest->used = ++graphs->clock;
}

void o3rt_cuda_graphs_clear(o3rt_cuda_graphs_t *graphs, const o3rt_cuda_api_t *api) {
  for (int i = 0; i < O3RT_CUDA_GRAPHS; ++i) forget(&graphs->items[i], api);
}
