/* The table behind a model, and the calls that only read its description. */
#include "session.h"

static _Thread_local o3rt_text_t last_error_text;

o3rt_text_t *o3rt_last_error_reset(void) {
  o3rt_text_clear(&last_error_text);
  return &last_error_text;
}

static const char *last_error(void) { return last_error_text.text; }

static void model_info(const o3_model_t *model, o3_model_info_t *info) {
  const o3rt_model_t *compiled = model->compiled;
  *info = (o3_model_info_t){.name = compiled->name,
                            .target = compiled->target,
                            .build_id = compiled->build_id,
                            .producer = compiled->producer,
                            .opt_level = (int32_t)compiled->opt_level,
                            .num_inputs = compiled->num_inputs,
                            .num_outputs = compiled->num_outputs,
                            .constant_bytes = compiled->constant_bytes,
                            .num_kernels = compiled->num_kernels};
}

static void describe(const o3rt_model_t *compiled, const o3rt_tensor_t *spec, o3_tensor_info_t *info) {
  *info = (o3_tensor_info_t){.name = spec->name, .dtype = (o3_dtype_t)spec->dtype, .rank = spec->rank};
  for (int32_t i = 0; i < spec->rank; ++i) {
    const o3rt_dim_t *dim = &spec->dims[i];
    info->shape[i] = dim->size;
    if (dim->size < 0 && dim->symbol >= 0) info->symbols[i] = compiled->symbols[dim->symbol];
  }
}

static o3_code_t check_index(const char *kind, int32_t index, int32_t count) {
  o3rt_text_t *error = o3rt_last_error_reset();
  if (index >= 0 && index < count) return O3_OK;
  o3rt_text_printf(error, "there is no %s %d: the model has %d", kind, index, count);
  return O3_ERROR_INVALID_ARGUMENT;
}

static o3_code_t input_info(const o3_model_t *model, int32_t index, o3_tensor_info_t *info) {
  const o3rt_model_t *compiled = model->compiled;
  o3_code_t code = check_index("input", index, compiled->num_inputs);
  if (code == O3_OK) describe(compiled, &compiled->inputs[index], info);
  return code;
}

static o3_code_t output_info(const o3_model_t *model, int32_t index, o3_tensor_info_t *info) {
  const o3rt_model_t *compiled = model->compiled;
  o3_code_t code = check_index("output", index, compiled->num_outputs);
  if (code == O3_OK) describe(compiled, &compiled->outputs[index], info);
  return code;
}

static o3_code_t kernel_info(const o3_model_t *model, int32_t index, o3_kernel_info_t *info) {
  const o3rt_model_t *compiled = model->compiled;
  o3_code_t code = check_index("kernel", index, compiled->num_kernels);
  if (code != O3_OK) return code;
  const o3rt_kernel_t *kernel = &compiled->kernels[index];
  *info = (o3_kernel_info_t){kernel->name, kernel->kind, kernel->num_nodes, kernel->nodes};
  return O3_OK;
}

static o3_code_t session_profile(o3_session_t *base, int32_t on) {
  o3rt_session_t *session = (o3rt_session_t *)base;
  o3rt_text_t *error = o3rt_last_error_reset();
  if (!on) {
    o3rt_profile_destroy(session->profile);
    session->profile = NULL;
  } else if (!session->profile) {
    session->profile = o3rt_profile_create(session->compiled->num_kernels);
    if (session->profile) return O3_OK;
    o3rt_text_printf(error, "out of memory for a profile of %d kernels", session->compiled->num_kernels);
    return O3_ERROR_OUT_OF_MEMORY;
  }
  return O3_OK;
}

static o3_code_t session_kernel(const o3_session_t *base, int32_t index, o3_kernel_sample_t *sample) {
  const o3rt_session_t *session = (const o3rt_session_t *)base;
  if (!session->profile) {
    o3rt_text_printf(o3rt_last_error_reset(), "the session does not measure kernels: o3_session_profile");
    return O3_ERROR_INVALID_ARGUMENT;
  }
  if (index != O3_NO_KERNEL) {
    o3_code_t code = check_index("kernel", index, session->compiled->num_kernels);
    if (code != O3_OK) return code;
  }
  *sample = *o3rt_profile_sample(session->profile, index);
  return O3_OK;
}

static const char *session_error(const o3_session_t *session) {
  return ((const o3rt_session_t *)session)->error.text;
}

static const char *session_code(const o3_session_t *session) {
  return ((const o3rt_session_t *)session)->code;
}

static size_t session_memory(const o3_session_t *session) {
  const o3rt_session_t *it = (const o3rt_session_t *)session;
  const o3rt_driver_t *driver = it->compiled->driver;
  return o3rt_memory_bytes(&it->memory) + (driver ? driver->memory(it) : 0);
}

const o3_model_api_t o3rt_api = {
    .abi = O3_MODEL_ABI,
    .model_info = model_info,
    .input_info = input_info,
    .output_info = output_info,
    .session_create = o3rt_session_create,
    .session_run = o3rt_session_run,
    .session_error = session_error,
    .session_memory = session_memory,
    .session_destroy = o3rt_session_destroy,
    .last_error = last_error,
    .kernel_info = kernel_info,
    .session_profile = session_profile,
    .session_kernel = session_kernel,
    .session_code = session_code,
};
