/* A session's life. A run has one order: check everything, run, check the results' shapes, hand out. The
 * caller's outputs are touched only when nothing can fail any more. */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_features.h"

#define DEFAULT_SPIN_US 50

// ---- Create ----

static bool check_format(const o3rt_model_t *compiled, o3rt_text_t *error) {
  if (compiled->format == O3RT_FORMAT) return true;
  o3rt_text_printf(error,
                   "model '%s' has format %u, the runtime linked into it has %u: models of two compiler "
                   "versions were mixed in one static link",
                   compiled->name, compiled->format, O3RT_FORMAT);
  return false;
}

static bool check_features(const char *name, uint64_t needed, o3rt_text_t *error) {
  uint64_t lacking = needed & ~o3rt_cpu_features_usable(needed);
  if (lacking == 0) return true;
  o3rt_text_printf(error, "this model was compiled for %s and needs ", name);
  o3rt_cpu_features_print(needed, error);
  o3rt_text_printf(error, "; this CPU lacks ");
  o3rt_cpu_features_print(lacking, error);
  return false;
}

// What O3_CPU_CODE asks for: it must be there, and run here.
static bool pick_wanted_code(o3rt_session_t *session, const char *wanted, o3rt_text_t *error) {
  const o3rt_model_t *compiled = session->compiled;
  for (int32_t i = 0; i < compiled->num_codes; ++i) {
    const o3rt_code_t *code = &compiled->codes[i];
    if (strcmp(code->name, wanted) != 0) continue;
    session->code = code->name;
    session->run = code->run;
    return check_features(code->name, code->cpu_features, error);
  }
  o3rt_text_printf(error, "O3_CPU_CODE is '%s', model '%s' has code for", wanted, compiled->name);
  for (int32_t i = 0; i < compiled->num_codes; ++i)
    o3rt_text_printf(error, "%s %s", i ? " and" : "", compiled->codes[i].name);
  return false;
}

static bool pick_code(o3rt_session_t *session, o3rt_text_t *error) {
  const o3rt_model_t *compiled = session->compiled;
  const char *wanted = compiled->num_codes ? getenv("O3_CPU_CODE") : NULL;
  if (wanted && *wanted) return pick_wanted_code(session, wanted, error);
  for (int32_t i = 0; i < compiled->num_codes; ++i) {
    const o3rt_code_t *code = &compiled->codes[i];
    if (code->cpu_features & ~o3rt_cpu_features_usable(code->cpu_features)) continue;
    session->code = code->name;
    session->run = code->run;
    return true;
  }
  session->code = compiled->target;
  session->run = compiled->run;
  return check_features(compiled->target, compiled->cpu_features, error);
}

static bool check_options(const o3rt_model_t *compiled, const o3_session_options_t *options,
                          o3rt_text_t *error) {
  if (options->threads < 0 || options->threads > O3RT_MAX_THREADS) {
    o3rt_text_printf(error, "threads is %d, expected 0 (all) to %d", options->threads, O3RT_MAX_THREADS);
    return false;
  }
  if (options->spin_us < -1) {
    o3rt_text_printf(error, "spin_us is %d, expected -1 (never) or more", options->spin_us);
    return false;
  }
  if (options->device && !compiled->driver) {
    o3rt_text_printf(error, "device is %d, but model '%s' is for CPUs", options->device, compiled->name);
    return false;
  }
  return true;
}

static o3_code_t start_pool(o3rt_session_t *session, const o3_session_options_t *options,
                            o3rt_text_t *error) {
  int32_t threads = session->compiled->driver ? 1 : options->threads ? options->threads : o3rt_cpu_count();
  int32_t spin_us = options->spin_us == 0 ? DEFAULT_SPIN_US : options->spin_us < 0 ? 0 : options->spin_us;
  if (threads == 0) {
    o3rt_text_printf(error, "the system does not tell how many CPUs this process may use: set threads");
    return O3_ERROR_UNSUPPORTED;
  }
  int reason = o3rt_pool_create(threads, spin_us, &session->pool);
  if (reason == 0) return O3_OK;
  o3rt_text_printf(error, "cannot start %d threads: %s", threads, strerror(reason));
  return O3_ERROR_OUT_OF_MEMORY;
}

static size_t memref_size(const o3rt_tensor_t *spec) {
  return sizeof(o3rt_memref_t) + 2 * (size_t)spec->rank * sizeof(int64_t);
}

// One block: the pointers, then the descriptors, each as long as its rank needs. NULL when memory is out.
static o3rt_memref_t **create_memrefs(const o3rt_tensor_t *specs, int32_t count) {
  size_t pointers = ((size_t)count + 1) * sizeof(o3rt_memref_t *), bytes = pointers;
  for (int32_t i = 0; i < count; ++i) bytes += memref_size(&specs[i]);
  o3rt_memref_t **memrefs = calloc(1, bytes);
  if (!memrefs) return NULL;
  char *place = (char *)memrefs + pointers;
  for (int32_t i = 0; i < count; ++i) {
    void *memref = place;
    memrefs[i] = memref;
    place += memref_size(&specs[i]);
  }
  return memrefs;
}

static o3_code_t init_session(o3rt_session_t *session, const o3_session_options_t *options,
                              o3rt_text_t *error) {
  const o3rt_model_t *compiled = session->compiled;
  size_t num_symbols = compiled->num_symbols > 0 ? (size_t)compiled->num_symbols : 1;
  session->symbols = calloc(num_symbols, sizeof *session->symbols);
  session->inputs = create_memrefs(compiled->inputs, compiled->num_inputs);
  session->outputs = create_memrefs(compiled->outputs, compiled->num_outputs);
  if (session->symbols && session->inputs && session->outputs) {
    o3_code_t code = start_pool(session, options, error);
    const o3rt_driver_t *driver = compiled->driver;
    return code == O3_OK && driver ? driver->open(session, options, error) : code;
  }
  o3rt_text_printf(error, "out of memory");
  return O3_ERROR_OUT_OF_MEMORY;
}

o3_code_t o3rt_session_create(const o3_model_t *model, const o3_session_options_t *options,
                              o3_session_t **result) {
  const o3rt_model_t *compiled = model->compiled;
  const o3_session_options_t defaults = {0};
  o3rt_text_t *error = o3rt_last_error_reset();
  *result = NULL;
  if (!options) options = &defaults;
  if (!check_format(compiled, error)) return O3_ERROR_UNSUPPORTED;
  if (!check_options(compiled, options, error)) return O3_ERROR_INVALID_ARGUMENT;
  o3rt_session_t *session = calloc(1, sizeof *session);
  if (!session) {
    o3rt_text_printf(error, "out of memory");
    return O3_ERROR_OUT_OF_MEMORY;
  }
  session->base.api = model->api;
  session->compiled = compiled;
  o3rt_memory_init(&session->memory);
  o3_code_t code = pick_code(session, error) ? init_session(session, options, error) : O3_ERROR_UNSUPPORTED;
  if (code == O3_OK)
    *result = &session->base;
  else
    o3rt_session_destroy(&session->base);
  return code;
}

void o3rt_session_destroy(o3_session_t *base) {
  o3rt_session_t *session = (o3rt_session_t *)base;
  if (session->compiled->driver) session->compiled->driver->close(session);
  o3rt_pool_destroy(session->pool);
  o3rt_memory_deinit(&session->memory);
  o3rt_profile_destroy(session->profile);
  free(session->symbols);
  free(session->inputs);
  free(session->outputs);
  free(session);
}

// ---- Run ----

static bool check_guards(o3rt_session_t *session) {
  const o3rt_model_t *compiled = session->compiled;
  int32_t broken = compiled->num_guards > 0 ? compiled->check(session->symbols) : -1;
  if (broken < 0) return true;
  o3rt_text_printf(&session->error, "the inputs' shapes do not fit together: %s", compiled->guards[broken]);
  return false;
}

static o3_code_t run_compiled(o3rt_session_t *session) {
  if (setjmp(session->escape) != 0) return session->failure;
  session->run(session, session->inputs, session->outputs);
  return O3_OK;
}

static void *result_data(o3rt_session_t *session, int32_t index) {
  const o3rt_memref_t *memref = session->outputs[index];
  size_t element = o3rt_dtype_bytes(session->compiled->outputs[index].dtype);
  return (char *)memref->aligned + (size_t)memref->offset * element;
}

// A result may lie in an input's buffer or in the constants. It is moved into the session's memory before
// anything is written to the caller's: an input may be freed or be the place of another output, and what a
// caller gets may be written to.
static o3_code_t stage_results(o3rt_session_t *session) {
  for (int32_t i = 0; i < session->compiled->num_outputs; ++i) {
    o3rt_memref_t *memref = session->outputs[i];
    size_t bytes = o3rt_memref_bytes(memref, &session->compiled->outputs[i]);
    const void *data = result_data(session, i);
    if (o3rt_memory_overlaps(&session->memory, data, bytes)) continue;
    void *copy = o3rt_memory_alloc(&session->memory, (int64_t)bytes);
    if (!copy) {
      o3rt_text_printf(&session->error, "out of memory: output '%s' takes %zu bytes",
                       session->compiled->outputs[i].name, bytes);
      return O3_ERROR_OUT_OF_MEMORY;
    }
    if (bytes > 0) memcpy(copy, data, bytes);
    memref->allocated = memref->aligned = copy;
    memref->offset = 0;
  }
  return O3_OK;
}

static void hand_out(o3rt_session_t *session, o3_tensor_t *outputs) {
  for (int32_t i = 0; i < session->compiled->num_outputs; ++i) {
    const o3rt_tensor_t *spec = &session->compiled->outputs[i];
    const o3rt_memref_t *memref = session->outputs[i];
    size_t bytes = o3rt_memref_bytes(memref, spec);
    if (!outputs[i].data)
      outputs[i].data = result_data(session, i);
    else if (bytes > 0)
      memcpy(outputs[i].data, result_data(session, i), bytes);
    outputs[i].dtype = (o3_dtype_t)spec->dtype;
    outputs[i].rank = spec->rank;
    for (int32_t k = 0; k < spec->rank; ++k) outputs[i].shape[k] = memref->sizes_and_strides[k];
  }
}

static o3_code_t run_on_cpu(o3rt_session_t *session, o3_tensor_t *outputs) {
  o3_code_t code = run_compiled(session);
  if (code != O3_OK) return code;
  if (!o3rt_results_check(session, outputs)) return O3_ERROR_INVALID_ARGUMENT;
  code = stage_results(session);
  if (code == O3_OK) hand_out(session, outputs);
  return code;
}

o3_code_t o3rt_session_run(o3_session_t *base, const o3_tensor_t *inputs, int32_t num_inputs,
                           o3_tensor_t *outputs, int32_t num_outputs) {
  o3rt_session_t *session = (o3rt_session_t *)base;
  const o3rt_driver_t *driver = session->compiled->driver;
  o3rt_text_clear(&session->error);
  if (!o3rt_inputs_bind(session, inputs, num_inputs) || !o3rt_outputs_check(session, outputs, num_outputs) ||
      !check_guards(session))
    return O3_ERROR_INVALID_ARGUMENT;
  o3rt_memory_recycle(&session->memory);
  if (session->profile) o3rt_profile_start(session->profile);
  o3_code_t code = driver ? driver->run(session, inputs, outputs) : run_on_cpu(session, outputs);
  if (session->profile && !driver) o3rt_profile_end(session->profile);
  return code;
}
