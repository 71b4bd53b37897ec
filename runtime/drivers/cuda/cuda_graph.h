/* Recorded runs. A run of shapes that were seen before is recorded as a CUDA graph, and later ones are
 * replays of it: the launches of a whole network at the cost of one. */
#ifndef O3_RUNTIME_CUDA_GRAPH_H
#define O3_RUNTIME_CUDA_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_api.h"

#define O3RT_CUDA_GRAPHS 8 /* kept a session; the one that was not used for longest makes room */

typedef struct o3rt_cuda_recorded {
  int64_t *key;           /* NULL: a free place */
  int64_t *results;       /* what the run left in the outputs' descriptors, once it is recorded */
  cuda_graph_exec_t exec; /* NULL: not recorded */
  int waits, next_waits; /* runs until recording is tried again, and if that fails, too; 0: it never failed */
  uint64_t used;
} o3rt_cuda_recorded_t;

typedef struct o3rt_cuda_graphs {
  uint64_t clock;
  o3rt_cuda_recorded_t items[O3RT_CUDA_GRAPHS];
} o3rt_cuda_graphs_t;

/* The place of |key|, |words| long; NULL when it was not seen. */
o3rt_cuda_recorded_t *o3rt_cuda_graphs_find(o3rt_cuda_graphs_t *graphs, const int64_t *key, size_t words);
/* Notes that |key|, which it takes (malloc'ed), was seen: in a free place, or in the oldest. */
void o3rt_cuda_graphs_note(o3rt_cuda_graphs_t *graphs, const o3rt_cuda_api_t *api, int64_t *key);
/* Forgets all. */
void o3rt_cuda_graphs_clear(o3rt_cuda_graphs_t *graphs, const o3rt_cuda_api_t *api);

#endif
