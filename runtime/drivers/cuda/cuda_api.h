/* NVIDIA's driver, opened when the first GPU model is: nothing is linked with it, so a GPU model loads on any
 * machine and says what is missing. */
#ifndef O3_RUNTIME_CUDA_API_H
#define O3_RUNTIME_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "../../error_text.h"

typedef struct cuda_context *cuda_context_t;
typedef struct cuda_module *cuda_module_t;
typedef struct cuda_function *cuda_function_t;
typedef struct cuda_stream *cuda_stream_t;
typedef struct cuda_graph *cuda_graph_t;
typedef struct cuda_graph_exec *cuda_graph_exec_t;
typedef struct cuda_event *cuda_event_t;
typedef unsigned long long cuda_address_t; /* in the card's memory */

/* CUlaunchAttribute and CUlaunchConfig. */
typedef struct cuda_launch_attribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic;
  } value;
} cuda_launch_attribute_t;
typedef struct cuda_launch {
  unsigned grid[3], block[3], shared_bytes;
  cuda_stream_t stream;
  cuda_launch_attribute_t *attributes;
  unsigned num_attributes;
} cuda_launch_t;

enum {
  CUDA_OK = 0,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NO_DEVICE = 100,
  CUDA_ATTRIBUTE_MAJOR = 75, /* of a device */
  CUDA_ATTRIBUTE_MINOR = 76,
  CUDA_FUNCTION_SHARED_BYTES = 8, /* the most dynamic shared memory that a function may get */
  CUDA_LAUNCH_CLUSTER = 4,        /* CUlaunchAttributeID */
  CUDA_LAUNCH_PROGRAMMATIC = 6,
  CUDA_STREAM_NON_BLOCKING = 1,
  CUDA_HOST_ALLOC_DEVICE_MAP = 2,
  CUDA_CAPTURE_THREAD_LOCAL = 1
};

typedef struct o3rt_cuda_api {
  int version; /* of CUDA, as the driver tells: 12040 */
#define O3_CUDA(name, symbol, arguments) int(*name) arguments;
#include "cuda_api.def"
#undef O3_CUDA
} o3rt_cuda_api_t;

/* The driver, loaded at the first call; NULL with the reason in |error|. Any thread may call. */
const o3rt_cuda_api_t *o3rt_cuda_api(o3rt_text_t *error);

/* "CUDA_ERROR_INVALID_VALUE (1)", appended. */
void o3rt_cuda_print_error(const o3rt_cuda_api_t *api, int code, o3rt_text_t *text);

#endif
