/* What compiled code calls. A failure leaves the compiled code with longjmp: its frames own nothing, every
 * buffer belongs to the session. */
#include "session.h"

void o3rt_session_escape(o3rt_session_t *session, o3_code_t code) {
  session->failure = code;
  longjmp(session->escape, 1);
}

static _Noreturn void fail_out_of_memory(o3rt_session_t *session, const char *what, int64_t bytes) {
  if (bytes < 0)
    o3rt_text_printf(&session->error, "%s would take more than 2^63 bytes", what);
  else
    o3rt_text_printf(&session->error, "out of memory: %s takes %lld bytes", what, (long long)bytes);
  o3rt_session_escape(session, O3_ERROR_OUT_OF_MEMORY);
}

void *o3rt_arena(o3rt_session_t *session, int64_t bytes) {
  void *arena = o3rt_memory_arena(&session->memory, bytes);
  if (!arena) fail_out_of_memory(session, "the model's arena", bytes);
  return arena;
}

void *o3rt_alloc(o3rt_session_t *session, int64_t bytes) {
  void *memory = o3rt_memory_alloc(&session->memory, bytes);
  if (!memory) fail_out_of_memory(session, "a buffer of the model", bytes);
  return memory;
}

void o3rt_free(o3rt_session_t *session, void *memory) { o3rt_memory_free(&session->memory, memory); }

void o3rt_fail(o3rt_session_t *session, const char *message) {
  o3rt_text_printf(&session->error, "%s", message);
  o3rt_session_escape(session, O3_ERROR_RUN);
}

void o3rt_kernel_begin(o3rt_session_t *session, int32_t kernel, int64_t operations, int64_t bytes) {
  if (!session->profile) return;
  o3rt_profile_begin(session->profile, kernel, operations, bytes);
  if (session->compiled->driver) session->compiled->driver->mark(session, kernel);
}

void o3rt_parallel_for(o3rt_session_t *session, o3rt_body_fn_t body, void *context, int64_t count,
                       int64_t grain) {
  o3rt_pool_run(session->pool, body, context, count, grain);
}
