/* The object is linked in memory by LLVM's JIT linker: its calls of the runtime find the runtime that o3c
 * itself is linked with, its weights stay where the weights store has them. */
#include "driver/evaluate.h"

#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/map.h"
#include "driver/pass_table.h"
#include "o3/model.h"
#include "runtime/compiled.h"
#include "target/lower.h"

/* The runtime's table of functions; compiled models refer to it by name too. */
extern const o3_model_api_t o3rt_api;

/* ---- To an object ---- */

static o3_status_t compile(o3_pass_env_t *env, MlirModule module, o3_artifact_t *object) {
  const o3_target_t *host;
  O3_TRY(o3_target_find("cpu", &host));
  O3_TRY(o3_lower(env, module));
  for (int i = 0; i < host->num_passes; ++i) {
    if (host->passes[i].min_level == 0) O3_TRY(host->passes[i].run(env, module));
  }
  return host->emit_object(env, module, object);
}

/* ---- Into this process ---- */

enum { WEIGHT_ALIGNMENT = 64 };

static o3_status_t jit_status(LLVMErrorRef error) {
  if (!error) return NULL;
  char *text = LLVMGetErrorMessage(error);
  o3_status_t status = o3_status_create(O3_STATUS_INTERNAL, "the JIT linker: %s", text);
  LLVMDisposeErrorMessage(text);
  return status;
}

static o3_status_t define(LLVMOrcLLJITRef jit, const char *name, const void *address) {
  LLVMOrcCSymbolMapPair pair = {.Name = LLVMOrcLLJITMangleAndIntern(jit, name),
                                .Sym = {.Address = (LLVMOrcExecutorAddress)(uintptr_t)address,
                                        .Flags = {.GenericFlags = LLVMJITSymbolGenericFlagsExported}}};
  LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(&pair, 1);
  return jit_status(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), unit));
}

static o3_status_t define_runtime(LLVMOrcLLJITRef jit) {
  static const struct {
    const char *name;
    void (*function)(void);
  } CALLS[] = {{"o3rt_arena", (void (*)(void))o3rt_arena},
               {"o3rt_alloc", (void (*)(void))o3rt_alloc},
               {"o3rt_free", (void (*)(void))o3rt_free},
               {"o3rt_fail", (void (*)(void))o3rt_fail},
               {"o3rt_kernel_begin", (void (*)(void))o3rt_kernel_begin},
               {"o3rt_parallel_for", (void (*)(void))o3rt_parallel_for}};
  for (size_t i = 0; i < sizeof(CALLS) / sizeof(CALLS[0]); ++i)
    O3_TRY(define(jit, CALLS[i].name, (const void *)(uintptr_t)CALLS[i].function));
  LLVMOrcDefinitionGeneratorRef process;
  char prefix = LLVMOrcLLJITGetGlobalPrefix(jit);
  O3_TRY(jit_status(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, prefix, NULL, NULL)));
  LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit), process);
  return NULL;
}

/* Code counts on weights being aligned, as the packager lays them out; in a model file they lie anywhere.
 * Copies are noted in |copies|, to be freed after the run. */
static o3_status_t aligned_data(const void *data, size_t bytes, o3_ptr_vec_t *copies, const void **aligned) {
  *aligned = data;
  if ((uintptr_t)data % WEIGHT_ALIGNMENT == 0) return NULL;
  void *copy =
      aligned_alloc(WEIGHT_ALIGNMENT, (bytes + WEIGHT_ALIGNMENT) / WEIGHT_ALIGNMENT * WEIGHT_ALIGNMENT);
  O3_TRY_ALLOC(copy);
  if (!o3_ptr_vec_push(copies, copy)) {
    free(copy);
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  memcpy(copy, data, bytes);
  *aligned = copy;
  return NULL;
}

static o3_status_t define_weights(o3_pass_env_t *env, MlirModule module, LLVMOrcLLJITRef jit,
                                  o3_ptr_vec_t *copies) {
  MlirAttribute list = o3_op_attr(mlirModuleGetOperation(module), "o3.weights");
  if (mlirAttributeIsNull(list)) return NULL;
  for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(list); ++i) {
    MlirAttribute entry = mlirArrayAttrGetElement(list, i);
    MlirStringRef symbol =
        mlirStringAttrGetValue(mlirDictionaryAttrGetElementByName(entry, O3_STR("symbol")));
    MlirAttribute value = mlirDictionaryAttrGetElementByName(entry, O3_STR("value"));
    const char *name = o3_arena_strndup(env->arena, symbol.data, symbol.length);
    size_t bytes;
    const void *data = o3_weights_data(env->weights, value, &bytes);
    O3_TRY_ALLOC(name);
    O3_TRY_ALLOC(data);
    O3_TRY(aligned_data(data, bytes, copies, &data));
    O3_TRY(define(jit, name, data));
  }
  return NULL;
}

static o3_status_t load(LLVMOrcLLJITRef jit, const o3_artifact_t *object, o3rt_run_fn_t *run) {
  LLVMMemoryBufferRef buffer =
      LLVMCreateMemoryBufferWithMemoryRangeCopy(object->data, object->size, "constants");
  O3_TRY(jit_status(LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), buffer)));
  LLVMOrcExecutorAddress address;
  O3_TRY(jit_status(LLVMOrcLLJITLookup(jit, &address, "o3m_run")));
  *run = (o3rt_run_fn_t)(uintptr_t)address;
  return NULL;
}

/* ---- Running ---- */

/* The results' types, read before lowering takes their signs. */
typedef struct outputs {
  int count;
  MlirType *types;
  o3rt_tensor_t *tensors;
  o3_tensor_t *results;
} outputs_t;

static o3_status_t describe_output(o3_pass_env_t *env, MlirType type, o3rt_tensor_t *tensor) {
  int rank = o3_type_rank(type);
  o3rt_dim_t *dims = O3_ARENA_ARRAY(env->arena, o3rt_dim_t, (size_t)rank + 1);
  char *element = o3_type_text(o3_type_element(type));
  o3_dtype_id_t dtype;
  bool known = element && o3_dtype_from_mlir(element, &dtype);
  free(element);
  O3_TRY_ALLOC(dims);
  if (!known) return o3_status_create(O3_STATUS_INTERNAL, "a constant of an element type without a number");
  for (int i = 0; i < rank; ++i) dims[i] = (o3rt_dim_t){.size = o3_type_dim(type, i), .symbol = -1};
  *tensor =
      (o3rt_tensor_t){.name = "constant", .dims = dims, .rank = rank, .dtype = o3_dtype_info(dtype)->onnx};
  return NULL;
}

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
    O3_TRY(describe_output(env, outputs->types[i], &outputs->tensors[i]));
  }
  return NULL;
}

static o3_status_t store_result(o3_pass_env_t *env, MlirType type, const o3_tensor_t *result,
                                MlirAttribute *attr) {
  size_t bytes = (size_t)o3_type_count(type) * (size_t)(o3_type_bits(o3_type_element(type)) / 8);
  void *data = o3_weights_alloc(env->weights, bytes ? bytes : 1);
  O3_TRY_ALLOC(data);
  memcpy(data, result->data, bytes);
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
  for (int i = 0; !status && i < outputs->count; ++i)
    status = store_result(env, outputs->types[i], &outputs->results[i], &results[i]);
  o3_session_destroy(session);
  return status;
}

static o3_status_t load_and_execute(o3_pass_env_t *env, MlirModule module, const o3_artifact_t *object,
                                    outputs_t *outputs, MlirAttribute *results) {
  LLVMOrcLLJITRef jit;
  o3rt_run_fn_t run;
  o3_ptr_vec_t copies = o3_ptr_vec(env->arena);
  O3_TRY(jit_status(LLVMOrcCreateLLJIT(&jit, NULL)));
  o3_status_t status = define_runtime(jit);
  if (!status) status = define_weights(env, module, jit, &copies);
  if (!status) status = load(jit, object, &run);
  if (!status) status = execute(env, run, outputs, results);
  status = o3_status_join(status, jit_status(LLVMOrcDisposeLLJIT(jit)));
  for (size_t i = 0; i < copies.count; ++i) free(copies.items[i]);
  return status;
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
