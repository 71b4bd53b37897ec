/* A model on a card: its code and weights, loaded once and shared by all sessions. */
#ifndef O3_RUNTIME_CUDA_MODEL_H
#define O3_RUNTIME_CUDA_MODEL_H

#include <stdbool.h>

#include "../../../include/o3/model.h"
#include "../../compiled.h"
#include "cuda_api.h"

typedef struct o3rt_cuda_function {
  cuda_function_t handle;
  int64_t shared_bytes; /* that it is allowed to have so far; guarded by the model's lock */
} o3rt_cuda_function_t;

typedef struct o3rt_cuda_model {
  struct o3rt_cuda_model *next;
  int references; /* guarded by the list's lock */
  const o3rt_model_t *compiled;
  const o3rt_cuda_api_t *api;
  int device; /* ordinal; its CUdevice is |handle| */
  int handle;
  cuda_context_t context;
  cuda_module_t module;
  cuda_address_t weights;
  o3rt_cuda_function_t functions[]; /* by number of the kernel */
} o3rt_cuda_model_t;

/* What the user is told of a CUresult that is no success. */
o3_code_t o3rt_cuda_code(int code);

/* The model on card |device|: the one that is there already, or a new one. NULL with *code and |error|. */
o3rt_cuda_model_t *o3rt_cuda_model_retain(const o3rt_model_t *compiled, int device, o3_code_t *code,
                                          o3rt_text_t *error);
void o3rt_cuda_model_release(o3rt_cuda_model_t *model);

/* Lets kernel |kernel| have |bytes| of dynamic shared memory. A CUresult. */
int o3rt_cuda_model_allow_shared(o3rt_cuda_model_t *model, int32_t kernel, int64_t bytes);

#endif
