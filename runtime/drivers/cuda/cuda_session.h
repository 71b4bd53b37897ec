/* A session on a card: its stream, its memory, the recorded runs. Inside of the CUDA driver of the runtime.
 */
#ifndef O3_RUNTIME_CUDA_SESSION_H
#define O3_RUNTIME_CUDA_SESSION_H

#include "../../session.h"
#include "cuda_graph.h"
#include "cuda_marks.h"
#include "cuda_model.h"

/* Memory of the card that grows; what was in it is lost then. */
typedef struct o3rt_cuda_buffer {
  cuda_address_t address;
  size_t bytes;
} o3rt_cuda_buffer_t;

/* A block of o3rt_gpu_alloc, in the list of those in use or of those to be used again. */
typedef struct o3rt_cuda_block {
  struct o3rt_cuda_block *next;
  o3rt_cuda_buffer_t memory;
} o3rt_cuda_block_t;

typedef struct o3rt_cuda_session {
  o3rt_cuda_model_t *model;
  cuda_stream_t stream;
  bool owns_stream;
  bool checks_launches; /* O3_GPU_CHECK: waits for each kernel, to name the one that fails */
  bool never_replays;   /* a run took memory that a recorded one could not count on */
  o3rt_cuda_buffer_t arena, scratch;
  int32_t *error_word;        /* of the host, where kernels write it; NULL when no kernel checks anything */
  o3rt_cuda_buffer_t *inputs; /* copies of inputs that came from host memory */
  o3rt_cuda_block_t *live, *spare;
  o3rt_cuda_graphs_t graphs;
  o3rt_cuda_marks_t marks;
} o3rt_cuda_session_t;

static inline o3rt_cuda_session_t *o3rt_cuda_session(o3rt_session_t *session) { return session->device; }

/* Makes |buffer| at least |bytes| long. A CUresult. */
int o3rt_cuda_buffer_grow(const o3rt_cuda_session_t *cuda, o3rt_cuda_buffer_t *buffer, size_t bytes);

/* A block of at least |bytes|, in use until the next run; NULL with the CUresult in *code (CUDA_OK: host
 * memory is out). */
o3rt_cuda_block_t *o3rt_cuda_block_take(o3rt_cuda_session_t *cuda, size_t bytes, int *code);

/* Text of what failed, "<what>: CUDA_ERROR_... (n)", in the session's error; the code for the user. */
o3_code_t o3rt_cuda_fail(o3rt_session_t *session, int code, const char *what);

#endif
