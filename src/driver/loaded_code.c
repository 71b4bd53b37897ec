/* The object is linked in memory by LLVM's JIT linker: its calls of the runtime find the runtime that the
 * compiler itself is linked with, its weights stay where the weights store has them. */
#include "driver/loaded_code.h"

#include <llvm-c/Core.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

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

o3_status_t o3_loaded_data_align(const void *data, size_t bytes, o3_ptr_vec_t *copies, const void **aligned) {
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
    O3_TRY(o3_loaded_data_align(data, bytes, copies, &data));
    O3_TRY(define(jit, name, data));
  }
  return NULL;
}

static o3_status_t load(LLVMOrcLLJITRef jit, const o3_artifact_t *object, o3rt_run_fn_t *run) {
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object->data, object->size, "code");
  O3_TRY(jit_status(LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), buffer)));
  LLVMOrcExecutorAddress address;
  O3_TRY(jit_status(LLVMOrcLLJITLookup(jit, &address, "o3m_run")));
  *run = (o3rt_run_fn_t)(uintptr_t)address;
  return NULL;
}

o3_status_t o3_loaded_code_open(o3_pass_env_t *env, MlirModule module, const o3_artifact_t *object,
                                o3_loaded_code_t *code) {
  *code = (o3_loaded_code_t){.copies = o3_ptr_vec(env->arena)};
  O3_TRY(jit_status(LLVMOrcCreateLLJIT(&code->jit, NULL)));
  o3_status_t status = define_runtime(code->jit);
  if (!status) status = define_weights(env, module, code->jit, &code->copies);
  if (!status) status = load(code->jit, object, &code->run);
  return status ? o3_status_join(status, o3_loaded_code_close(code)) : NULL;
}

o3_status_t o3_loaded_code_close(o3_loaded_code_t *code) {
  o3_status_t status = jit_status(LLVMOrcDisposeLLJIT(code->jit));
  for (size_t i = 0; i < code->copies.count; ++i) free(code->copies.items[i]);
  *code = (o3_loaded_code_t){0};
  return status;
}

o3_status_t o3_loaded_tensor_describe(o3_arena_t *arena, const char *name, MlirType type,
                                      o3rt_tensor_t *tensor) {
  int rank = o3_type_rank(type);
  o3rt_dim_t *dims = O3_ARENA_ARRAY(arena, o3rt_dim_t, (size_t)rank + 1);
  char *element = o3_type_text(o3_type_element(type));
  o3_dtype_id_t dtype;
  bool known = element && o3_dtype_from_mlir(element, &dtype);
  free(element);
  O3_TRY_ALLOC(dims);
  if (!known)
    return o3_status_create(O3_STATUS_INTERNAL, "'%s' is of an element type without a number", name);
  for (int i = 0; i < rank; ++i) dims[i] = (o3rt_dim_t){.size = o3_type_dim(type, i), .symbol = -1};
  *tensor = (o3rt_tensor_t){.name = name, .dims = dims, .rank = rank, .dtype = o3_dtype_info(dtype)->onnx};
  return NULL;
}
