#include "driver/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "driver/loaded_code.h"
#include "ir/context.h"
#include "target/lower.h"

/* ---- To an object ---- */

static o3_status_t compile(o3_pass_env_t *env, MlirModule module, o3_artifact_t *object) {
  const o3_target_t *host;
  O3_TRY(o3_target_find("cpu", &host));
  O3_TRY(o3_lower(env, module));
  for (int i = 0; i < host->num_passes; ++i) {
    if (host->passes[i].min_level == 0) O3_TRY(host->passes[i].run(env, module));
  }
  O3_TRY(o3_ir_verify(mlirModuleGetOperation(module)));
  return host->emit_object(env, module, object);
}

/* ---- Running ---- */

/* @main's inputs or results; types are read before lowering takes their signs. */
typedef struct ends {
  int count;
  MlirType *types;
  o3rt_tensor_t *specs;
  o3_tensor_t *tensors;
} ends_t;

static o3_status_t describe_ends(o3_pass_env_t *env, MlirModule module, bool inputs, ends_t *ends) {
  MlirType function = mlirTypeAttrGetValue(o3_op_attr(o3_module_func(module, "main"), "function_type"));
  ends->count =
      (int)(inputs ? mlirFunctionTypeGetNumInputs(function) : mlirFunctionTypeGetNumResults(function));
  ends->types = O3_ARENA_ARRAY(env->arena, MlirType, (size_t)ends->count + 1);
  ends->specs = O3_ARENA_ARRAY(env->arena, o3rt_tensor_t, (size_t)ends->count + 1);
  ends->tensors = O3_ARENA_ARRAY(env->arena, o3_tensor_t, (size_t)ends->count + 1);
  O3_TRY_ALLOC(ends->types);
  O3_TRY_ALLOC(ends->specs);
  O3_TRY_ALLOC(ends->tensors);
  for (int i = 0; i < ends->count; ++i) {
    ends->types[i] = inputs ? mlirFunctionTypeGetInput(function, i) : mlirFunctionTypeGetResult(function, i);
    O3_TRY(o3_loaded_tensor_describe(env->arena, "constant", ends->types[i], &ends->specs[i]));
  }
  return NULL;
}

static size_t type_bytes(MlirType type) {
  return (size_t)o3_type_count(type) * (size_t)(o3_type_bits(o3_type_element(type)) / 8);
}

static o3_status_t read_input(o3_pass_env_t *env, const ends_t *inputs, int index, MlirAttribute attr,
                              o3_ptr_vec_t *copies) {
  size_t bytes = 0;
  const void *data = o3_weights_data(env->weights, attr, &bytes);
  if (!data || bytes != type_bytes(inputs->types[index]))
    return o3_status_create(O3_STATUS_INTERNAL, "input %d has no data, or data of another type", index);
  O3_TRY(o3_loaded_data_align(data, bytes, copies, &data));
  o3_tensor_t *tensor = &inputs->tensors[index];
  const o3rt_tensor_t *spec = &inputs->specs[index];
  *tensor =
      (o3_tensor_t){.data = (void *)(uintptr_t)data, .dtype = (o3_dtype_t)spec->dtype, .rank = spec->rank};
  for (int i = 0; i < spec->rank; ++i) tensor->shape[i] = spec->dims[i].size;
  return NULL;
}

static o3_status_t store_result(o3_pass_env_t *env, MlirType type, const o3_tensor_t *result,
                                MlirAttribute *attr) {
  size_t bytes = type_bytes(type);
  void *data = o3_weights_alloc(env->weights, bytes ? bytes : 1);
  O3_TRY_ALLOC(data);
  memcpy(data, result->data, bytes);
  o3_weights_count_read(env->weights, bytes);
  return o3_weights_add(env->weights, "folded", type, data, bytes, attr);
}

typedef struct running {
  o3_pass_env_t *env;
  const o3_evaluation_t *evaluation;
  ends_t inputs, outputs;
} running_t;

/* The inputs of run number |run|; their bytes. */
static o3_status_t read_inputs(const running_t *self, int run, o3_ptr_vec_t *copies, size_t *bytes) {
  const MlirAttribute *attrs = self->evaluation->inputs + run * self->inputs.count;
  *bytes = 0;
  for (int i = 0; i < self->inputs.count; ++i) {
    *bytes += type_bytes(self->inputs.types[i]);
    O3_TRY(read_input(self->env, &self->inputs, i, attrs[i], copies));
  }
  return NULL;
}

static o3_status_t run_once(const running_t *self, o3_session_t *session, int run) {
  o3_tensor_t *results = self->outputs.tensors;
  o3_ptr_vec_t copies = o3_ptr_vec(self->env->arena);
  size_t bytes;
  o3_status_t status = read_inputs(self, run, &copies, &bytes);
  for (int i = 0; i < self->outputs.count; ++i) results[i] = (o3_tensor_t){0};
  if (!status && o3_session_run(session, self->inputs.tensors, self->inputs.count, results,
                                self->outputs.count) != O3_OK)
    status = o3_status_create(O3_STATUS_INVALID_MODEL, "%s", o3_session_error(session));
  for (size_t i = 0; i < copies.count; ++i) free(copies.items[i]);
  O3_TRY(status);
  /* Operands were read by now, those in the code, too: before the results are copied. */
  if (self->evaluation->num_runs == 1)
    o3_weights_trim(self->env->weights);
  else
    o3_weights_count_read(self->env->weights, bytes);
  for (int i = 0; i < self->outputs.count; ++i)
    O3_TRY(store_result(self->env, self->outputs.types[i], &results[i],
                        &self->evaluation->results[run * self->outputs.count + i]));
  return NULL;
}

static o3_status_t execute(const running_t *self, o3rt_run_fn_t run) {
  o3rt_model_t compiled = {.format = O3RT_FORMAT,
                           .name = "constants",
                           .target = "cpu",
                           .build_id = "",
                           .producer = "o3c",
                           .num_inputs = self->inputs.count,
                           .inputs = self->inputs.specs,
                           .num_outputs = self->outputs.count,
                           .outputs = self->outputs.specs,
                           .run = run};
  o3_model_t model = {.api = &o3rt_api, .compiled = &compiled};
  o3_session_options_t options = {.threads = 1};
  o3_session_t *session;
  o3_status_t status = NULL;
  if (o3_session_create(&model, &options, &session) != O3_OK)
    return o3_status_create(O3_STATUS_INTERNAL, "%s", o3_last_error(&model));
  for (int i = 0; !status && i < self->evaluation->num_runs; ++i) status = run_once(self, session, i);
  o3_session_destroy(session);
  return status;
}

static o3_status_t load_and_execute(const running_t *self, const o3_artifact_t *object) {
  o3_loaded_code_t code;
  O3_TRY(o3_loaded_code_open(self->env, self->evaluation->module, object, &code));
  o3_status_t status = execute(self, code.run);
  return o3_status_join(status, o3_loaded_code_close(&code));
}

o3_status_t o3_evaluate(o3_pass_env_t *env, const o3_evaluation_t *evaluation) {
  const o3_target_t *host;
  o3_machine_t machine;
  running_t running = {.env = env, .evaluation = evaluation};
  o3_artifact_t object = {0};
  o3_pass_env_t plain = *env;
  O3_TRY(o3_target_find("cpu", &host));
  O3_TRY(host->machine(env->arena, &machine));
  plain.opt_level = 0;
  plain.machine = &machine;
  O3_TRY(describe_ends(env, evaluation->module, true, &running.inputs));
  O3_TRY(describe_ends(env, evaluation->module, false, &running.outputs));
  O3_ASSERT(running.inputs.count == evaluation->num_inputs &&
            running.outputs.count == evaluation->num_results);
  O3_TRY(compile(&plain, evaluation->module, &object));
  o3_status_t status = load_and_execute(&running, &object);
  free(object.data);
  return status;
}
