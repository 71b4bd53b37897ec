/* The object of a GPU model: the host's code, and beside it the kernels as PTX, as machine code where ptxas
 * is found, and o3m_gpu (o3rt_gpu_t), which tells the driver about both.
 *
 * PTX is compiled by the driver when the model is loaded (a fifth of a second for some dozens of kernels),
 * and runs on later cards; machine code loads at once, on cards of the same major version. A library carries
 * both.
 */
#include <llvm-c/Core.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "runtime/compiled.h"
#include "target/cpu/cpu.h"
#include "target/nvptx/nvptx.h"
#include "target/nvptx/nvptx_ir.h"
#include "target/nvptx/ptx.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct gpu_object {
  o3_pass_env_t *env;
  MlirModule module;
  bool specific;
  o3_artifact_t ptx, cubin;
  /* While the host's module is extended: */
  LLVMModuleRef host;
  LLVMContextRef context;
  LLVMTypeRef i32, i64, ptr;
} gpu_object_t;

/* ---- Constants of the host's module ---- */

static LLVMValueRef int32(const gpu_object_t *self, int64_t value) {
  return LLVMConstInt(self->i32, (uint64_t)value, true);
}
static LLVMValueRef int64(const gpu_object_t *self, int64_t value) {
  return LLVMConstInt(self->i64, (uint64_t)value, true);
}

static LLVMValueRef local(const gpu_object_t *self, LLVMValueRef value, unsigned alignment) {
  LLVMValueRef global = LLVMAddGlobal(self->host, LLVMTypeOf(value), "");
  LLVMSetInitializer(global, value);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  LLVMSetAlignment(global, alignment);
  return global;
}

static LLVMValueRef bytes(const gpu_object_t *self, const void *data, size_t size, bool terminated) {
  return local(self, LLVMConstStringInContext2(self->context, data, size, !terminated), 64);
}

static LLVMValueRef text(const gpu_object_t *self, MlirStringRef value) {
  return local(self, LLVMConstStringInContext2(self->context, value.data, value.length, false), 1);
}

static LLVMValueRef record(const gpu_object_t *self, LLVMValueRef *fields, size_t count) {
  return LLVMConstStructInContext(self->context, fields, (unsigned)count, false);
}

static LLVMValueRef array(const gpu_object_t *self, LLVMValueRef *items, intptr_t count) {
  if (count == 0) return LLVMConstNull(self->ptr);
  return local(self, LLVMConstArray2(LLVMTypeOf(items[0]), items, (uint64_t)count), 8);
}

/* ---- o3rt_gpu_t ---- */

static MlirAttribute list_of(const gpu_object_t *self, const char *name, intptr_t *count) {
  MlirAttribute list = o3_op_attr(mlirModuleGetOperation(self->module), name);
  *count = mlirAttributeIsNull(list) ? 0 : mlirArrayAttrGetNumElements(list);
  return list;
}

static MlirAttribute field_of(MlirAttribute entry, const char *name) {
  return mlirDictionaryAttrGetElementByName(entry, O3_STR(name));
}

static LLVMValueRef kernel_entry(const gpu_object_t *self, MlirAttribute entry) {
  LLVMValueRef fields[] = {text(self, mlirStringAttrGetValue(field_of(entry, "name"))),
                           text(self, mlirStringAttrGetValue(field_of(entry, "label")))};
  return record(self, fields, COUNT(fields));
}

static LLVMValueRef message_entry(const gpu_object_t *self, MlirAttribute entry) {
  return text(self, mlirStringAttrGetValue(entry));
}

static LLVMValueRef weight_entry(const gpu_object_t *self, MlirAttribute entry) {
  MlirStringRef symbol = mlirStringAttrGetValue(field_of(entry, "symbol"));
  char *name = strndup(symbol.data, symbol.length);
  if (!name) return NULL;
  LLVMValueRef data = LLVMGetNamedGlobal(self->host, name);
  if (!data) data = LLVMAddGlobal(self->host, LLVMInt8TypeInContext(self->context), name);
  free(name);
  LLVMValueRef fields[] = {data, int64(self, mlirIntegerAttrGetValueInt(field_of(entry, "bytes"))),
                           int64(self, mlirIntegerAttrGetValueInt(field_of(entry, "offset")))};
  return record(self, fields, COUNT(fields));
}

typedef LLVMValueRef (*entry_fn_t)(const gpu_object_t *self, MlirAttribute entry);

static o3_status_t entries(const gpu_object_t *self, const char *name, entry_fn_t make, intptr_t *count,
                           LLVMValueRef *result) {
  MlirAttribute list = list_of(self, name, count);
  LLVMValueRef *items = O3_ARENA_ARRAY(self->env->arena, LLVMValueRef, (size_t)*count + 1);
  O3_TRY_ALLOC(items);
  for (intptr_t i = 0; i < *count; ++i) {
    items[i] = make(self, mlirArrayAttrGetElement(list, i));
    O3_TRY_ALLOC(items[i]);
  }
  *result = array(self, items, *count);
  return NULL;
}

/* Bytes of 0 and 1. */
static o3_status_t places(const gpu_object_t *self, const char *name, LLVMValueRef *result) {
  MlirAttribute list = o3_op_attr(mlirModuleGetOperation(self->module), name);
  intptr_t count = mlirAttributeIsNull(list) ? 0 : mlirDenseArrayGetNumElements(list);
  char *flags = O3_ARENA_ARRAY(self->env->arena, char, (size_t)count + 1);
  O3_TRY_ALLOC(flags);
  for (intptr_t i = 0; i < count; ++i) flags[i] = (char)mlirDenseI64ArrayGetElement(list, i);
  *result = bytes(self, flags, (size_t)count, true);
  return NULL;
}

static int64_t weight_bytes(const gpu_object_t *self) {
  intptr_t count;
  MlirAttribute list = list_of(self, O3_NVPTX_WEIGHTS_ATTR, &count);
  if (!count) return 0;
  MlirAttribute last = mlirArrayAttrGetElement(list, count - 1);
  return mlirIntegerAttrGetValueInt(field_of(last, "bytes")) +
         mlirIntegerAttrGetValueInt(field_of(last, "offset"));
}

static o3_status_t add_description(LLVMModuleRef host, void *context) {
  gpu_object_t *self = context;
  MlirOperation module = mlirModuleGetOperation(self->module);
  intptr_t num_kernels, num_weights, num_messages;
  LLVMValueRef kernels, weights, messages, arguments, results;
  self->host = host;
  self->context = LLVMGetModuleContext(host);
  self->i32 = LLVMInt32TypeInContext(self->context);
  self->i64 = LLVMInt64TypeInContext(self->context);
  self->ptr = LLVMPointerTypeInContext(self->context, 0);
  O3_TRY(entries(self, O3_NVPTX_KERNELS_ATTR, kernel_entry, &num_kernels, &kernels));
  O3_TRY(entries(self, O3_NVPTX_WEIGHTS_ATTR, weight_entry, &num_weights, &weights));
  O3_TRY(entries(self, O3_NVPTX_MESSAGES_ATTR, message_entry, &num_messages, &messages));
  O3_TRY(places(self, O3_NVPTX_HOST_ARGUMENTS_ATTR, &arguments));
  O3_TRY(places(self, O3_NVPTX_HOST_RESULTS_ATTR, &results));
  LLVMValueRef fields[] = {
      bytes(self, self->ptx.data, self->ptx.size, true),
      self->cubin.data ? bytes(self, self->cubin.data, self->cubin.size, false) : LLVMConstNull(self->ptr),
      int32(self, self->env->machine->gpu->sm),
      int32(self, self->specific),
      int32(self, num_kernels),
      int32(self, num_weights),
      int32(self, num_messages),
      int32(self, !mlirAttributeIsNull(o3_op_attr(module, O3_NVPTX_REPLAYABLE_ATTR))),
      kernels,
      weights,
      int64(self, weight_bytes(self)),
      messages,
      arguments,
      results};
  LLVMValueRef value = record(self, fields, COUNT(fields));
  LLVMValueRef global = LLVMAddGlobal(host, LLVMTypeOf(value), "o3m_gpu");
  LLVMSetInitializer(global, value);
  LLVMSetGlobalConstant(global, true);
  LLVMSetVisibility(global, LLVMHiddenVisibility);
  return NULL;
}

/* ---- The card's code ---- */

static MlirModule take_device(gpu_object_t *self, MlirOperation device) {
  MlirModule apart = mlirModuleCreateEmpty(mlirLocationUnknownGet(self->env->context));
  MlirOperation op = mlirBlockGetFirstOperation(o3_nvptx_device(self->module));
  self->specific = !mlirAttributeIsNull(o3_op_attr(device, O3_NVPTX_SPECIFIC_ATTR));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    mlirBlockAppendOwnedOperation(mlirModuleGetBody(apart), mlirOperationClone(op));
  return apart;
}

/* No machine code for cards that ptxas no longer knows: the driver takes the PTX. */
enum { FIRST_ASSEMBLED = 75 };

static o3_status_t make_cubin(gpu_object_t *self) {
  const o3_gpu_t *gpu = self->env->machine->gpu;
  char *ptxas = gpu->sm >= FIRST_ASSEMBLED ? o3_ptxas_find() : NULL;
  if (!ptxas) {
    o3_log(O3_LOG_NOTE, "%s: PTX only, the driver compiles it when the model is loaded (%s)", gpu->name,
           gpu->sm < FIRST_ASSEMBLED ? "ptxas knows compute capability 7.5 and later" : "no ptxas found");
    return NULL;
  }
  o3_status_t status = o3_ptxas_run(ptxas, gpu, self->specific, &self->ptx, &self->cubin, NULL);
  if (!status) o3_log(O3_LOG_NOTE, "%s: PTX, and machine code by %s", gpu->name, ptxas);
  if (status && o3_status_code(status) == O3_STATUS_UNSUPPORTED) {
    o3_log(O3_LOG_NOTE, "%s: PTX only, the driver compiles it when the model is loaded (%s)", gpu->name,
           o3_status_message(status));
    o3_status_destroy(status);
    status = NULL;
  }
  free(ptxas);
  return status;
}

/* The device module is no code of the host. */
static o3_status_t with_device(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact,
                               o3_status_t (*emit)(gpu_object_t *self, MlirModule device, o3_artifact_t *)) {
  gpu_object_t self = {.env = env, .module = module};
  MlirOperation device = o3_nvptx_device_op(module);
  *artifact = (o3_artifact_t){0};
  if (mlirOperationIsNull(device))
    return o3_status_create(O3_STATUS_INTERNAL, "the module has no code for the card");
  MlirModule apart = take_device(&self, device);
  mlirOperationRemoveFromParent(device);
  o3_status_t status = emit(&self, apart, artifact);
  mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), device);
  mlirModuleDestroy(apart);
  free(self.ptx.data);
  free(self.cubin.data);
  return status;
}

static o3_status_t emit_object(gpu_object_t *self, MlirModule device, o3_artifact_t *artifact) {
  o3_cpu_extension_t extension = {add_description, self};
  O3_TRY(o3_ptx_emit(self->env->machine->gpu, self->specific, device, &self->ptx));
  O3_TRY(make_cubin(self));
  return o3_cpu_emit_extended(self->env, self->module, &extension, artifact);
}

static o3_status_t emit_llvm_ir(gpu_object_t *self, MlirModule device, o3_artifact_t *artifact) {
  return o3_ptx_emit_llvm_ir(self->env->machine->gpu, self->specific, device, artifact);
}

static o3_status_t emit_ptx(gpu_object_t *self, MlirModule device, o3_artifact_t *artifact) {
  return o3_ptx_emit(self->env->machine->gpu, self->specific, device, artifact);
}

o3_status_t o3_nvptx_emit_object(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) {
  return with_device(env, module, artifact, emit_object);
}

o3_status_t o3_nvptx_emit_llvm_ir(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) {
  return with_device(env, module, artifact, emit_llvm_ir);
}

o3_status_t o3_nvptx_emit_ptx(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) {
  return with_device(env, module, artifact, emit_ptx);
}
