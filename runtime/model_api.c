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
                            .constant_bytes = compiled->constant_bytes};
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

static const char *session_error(const o3_session_t *session) {
  return ((const o3rt_session_t *)session)->error.text;
}

static size_t session_memory(const o3_session_t *session) {
  return o3rt_memory_bytes(&((const o3rt_session_t *)session)->memory);
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
};
