/* A compiled model, opened through its public interface alone (include/o3/model.h). */
#ifndef O3_RUN_MODEL_H
#define O3_RUN_MODEL_H

#include "base/arena.h"
#include "base/status.h"
#include "o3/model.h"

typedef struct o3_run_model {
  void *library;
  const o3_model_t *model;
  o3_model_info_t info;
  o3_tensor_info_t *inputs, *outputs; /* info.num_inputs and info.num_outputs of them, in the arena */
} o3_run_model_t;

/* Opens the library |path| and finds "<prefix>_model" in it. NOT_FOUND or INVALID_MODEL with the reason.
 * Close with o3_run_model_close, which takes the model's strings with it. */
o3_status_t o3_run_model_open(const char *path, const char *prefix, o3_arena_t *arena, o3_run_model_t *model)
    O3_MUST_USE;
void o3_run_model_close(o3_run_model_t *model);

/* Turns a failure of the model into a status with |message|. */
o3_status_t o3_run_model_failure(o3_code_t code, const char *message) O3_MUST_USE;

#endif
