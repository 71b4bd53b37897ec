/* Inside of a session: shared by the runtime's own files. */
#ifndef O3_RUNTIME_SESSION_H
#define O3_RUNTIME_SESSION_H

#include <setjmp.h>
#include <stdbool.h>

#include "../include/o3/model.h"
#include "compiled.h"
#include "error_text.h"
#include "profile.h"
#include "session_memory.h"
#include "thread_pool.h"

/* How a card is talked to: what a session of a GPU model does in place of the CPU's. */
struct o3rt_driver {
  o3_code_t (*open)(o3rt_session_t *session, const o3_session_options_t *options, o3rt_text_t *error);
  void (*close)(o3rt_session_t *session); /* also after a failed open */
  /* Inputs and outputs are checked, guards hold; the outputs are touched only when nothing can fail any more.
   */
  o3_code_t (*run)(o3rt_session_t *session, const o3_tensor_t *inputs, o3_tensor_t *outputs);
  size_t (*memory)(const o3rt_session_t *session); /* bytes on the card */
  /* While the session measures: kernel |kernel| of the profile starts. run sets the times. */
  void (*mark)(o3rt_session_t *session, int32_t kernel);
};
extern const o3rt_driver_t o3rt_cuda_driver;

struct o3rt_session {
  o3_session_t base; /* first: users hold a pointer to it */
  const o3rt_model_t *compiled;
  const char *code; /* the kind of code that it runs, |run| */
  o3rt_run_fn_t run;
  o3rt_pool_t *pool;
  o3rt_memory_t memory;
  int64_t *symbols; /* sizes bound by this run's inputs; -1 when not bound */
  o3rt_memref_t **inputs, **outputs;
  jmp_buf escape; /* back to session_run; valid while compiled code runs */
  o3_code_t failure;
  o3rt_text_t error;
  o3rt_profile_t *profile; /* NULL: off */
  void *device;            /* the driver's own; NULL on a CPU */
};

/* Leaves compiled code: the run ends with |code|, session->error tells why. */
_Noreturn void o3rt_session_escape(o3rt_session_t *session, o3_code_t code);

/* The table that every model points to; the compiler emits {&o3rt_api, &o3rt_compiled_model}. */
extern const o3_model_api_t o3rt_api;

/* Public calls, see include/o3/model.h. */
o3_code_t o3rt_session_create(const o3_model_t *model, const o3_session_options_t *options,
                              o3_session_t **session);
o3_code_t o3rt_session_run(o3_session_t *session, const o3_tensor_t *inputs, int32_t num_inputs,
                           o3_tensor_t *outputs, int32_t num_outputs);
void o3rt_session_destroy(o3_session_t *session);

/* This thread's last error outside of a session, cleared for a new call. */
o3rt_text_t *o3rt_last_error_reset(void);

/* ---- Checks (tensor_check.c). False: session->error tells why. ---- */

/* Binds the symbols and fills the input descriptors. */
bool o3rt_inputs_bind(o3rt_session_t *session, const o3_tensor_t *inputs, int32_t num_inputs);

/* Checks the outputs that the caller gave memory for, as far as their shapes are known before a run. */
bool o3rt_outputs_check(o3rt_session_t *session, const o3_tensor_t *outputs, int32_t num_outputs);

/* Checks them against the results. */
bool o3rt_results_check(o3rt_session_t *session, const o3_tensor_t *outputs);

/* Bytes of one element; 0 when |dtype| is no element type. */
size_t o3rt_dtype_bytes(int32_t dtype);

/* Bytes of what a descriptor describes. */
size_t o3rt_memref_bytes(const o3rt_memref_t *memref, const o3rt_tensor_t *spec);

#endif
