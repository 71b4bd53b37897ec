#include "driver/evaluate.h"

#include <stdlib.h>
#include <string.h>

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

/* The results' types, read before lowering takes their signs. */
typedef struct outputs {
  int count;
  MlirType *types;
  o3rt_tensor_t *tensors;
  o3_tensor_t *results;
} outputs_t;

static o3_status_t describe_outputs(o3_pass_env_t *env, MlirModule module, int count, outputs_t *outputs) {
  MlirType function = mlirTypeAttrGetValue(o3_op_attr(o3_module_func(module, "main"), "function_type"));
  outputs->count = count;
  outputs->types = O3_ARENA_ARRAY(env->arena, MlirType, (size_t)count + 1);
  outputs->tensors = O3_ARENA_ARRAY(env->arena, o3rt_tensor_t, (size_t)count + 1);
  outputs->results = O3_ARENA_ARRAY(env->arena, o3_tensor_t, (size_t)count + 1);
  O3_TRY_ALLOC(outputs->types);
  O3_TRY_ALLOC(outputs->tensors);
  O3_TRY_ALLOC(outputs->results);
  for (int i = 0; i < count; ++i) {
    outputs->types[i] = mlirFunctionTypeGetResult(function, i);
    O3_TRY(o3_loaded_tensor_describe(env->arena, "constant", outputs->types[i], &outputs->tensors[i]));
  }
  return NULL;
}

static o3_status_t store_result(o3_pass_env_t *env, MlirType type, const o3_tensor_t *result,
                                MlirAttribute *attr) {
  size_t bytes = (size_t)o3_type_count(type) * (size_t)(o3_type_bits(o3_type_element(type)) / 8);
  void *data = o3_weights_alloc(env->weights, bytes ? bytes : 1);
  O3_TRY_ALLOC(data);
  memcpy(data, result->data, bytes);
  o3_weights_count_read(env->weights, bytes);
  return o3_weights_add(env->weights, "folded", type, data, bytes, attr);
}

static o3_status_t execute(o3_pass_env_t *env, o3rt_run_fn_t run, outputs_t *outputs,
                           MlirAttribute *results) {
  o3rt_model_t compiled = {.format = O3RT_FORMAT,
                           .name = "constants",
                           .target = "cpu",
                           .build_id = "",
                           .producer = "o3c",
                           .num_outputs = outputs->count,
                           .outputs = outputs->tensors,
                           .run = run};
  o3_model_t model = {.api = &o3rt_api, .compiled = &compiled};
  o3_session_options_t options = {.threads = 1};
  o3_session_t *session;
  o3_status_t status = NULL;
  if (o3_session_create(&model, &options, &session) != O3_OK)
    return o3_status_create(O3_STATUS_INTERNAL, "%s", o3_last_error(&model));
  if (o3_session_run(session, NULL, 0, outputs->results, outputs->count) != O3_OK)
    status = o3_status_create(O3_STATUS_INVALID_MODEL, "%s", o3_session_error(session));
  o3_weights_trim(env->weights); /* the operands, before copies of the results are made */
  for (int i = 0; !status && i < outputs->count; ++i)
    status = store_result(env, outputs->types[i], &outputs->results[i], &results[i]);
  o3_session_destroy(session);
  return status;
}

static o3_status_t load_and_execute(o3_pass_env_t *env, MlirModule module, const o3_artifact_t *object,
                                    outputs_t *outputs, MlirAttribute *results) {
  o3_loaded_code_t code;
  O3_TRY(o3_loaded_code_open(env, module, object, &code));
  o3_status_t status = execute(env, code.run, outputs, results);
  return o3_status_join(status, o3_loaded_code_close(&code));
}

o3_status_t o3_evaluate(o3_pass_env_t *env, MlirModule module, int num_results, MlirAttribute *results) {
  const o3_target_t *host;
  o3_machine_t machine;
  outputs_t outputs;
  o3_artifact_t object = {0};
  o3_pass_env_t plain = *env;
  O3_TRY(o3_target_find("cpu", &host));
  O3_TRY(host->machine(env->arena, &machine));
  plain.opt_level = 0;
  plain.machine = &machine;
  O3_TRY(describe_outputs(env, module, num_results, &outputs));
  O3_TRY(compile(&plain, module, &object));
  o3_status_t status = load_and_execute(env, module, &object, &outputs, results);
  free(object.data);
  return status;
}
