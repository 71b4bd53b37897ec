/* The structs are LLVM struct constants with C's natural alignment, field by field in the order of
 * runtime/compiled.h; test_package_descriptor.c reads them back through that header. */
#include "package/descriptor.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

#include "runtime/compiled.h"
#include "target/llvm_code.h"
#include "target/target.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct emitter {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTypeRef i32, i64, ptr;
  o3_arena_t *arena;
} emitter_t;

/* ---- Constants ---- */

static LLVMValueRef int32(const emitter_t *e, int64_t value) {
  return LLVMConstInt(e->i32, (uint64_t)value, true);
}
static LLVMValueRef int64(const emitter_t *e, uint64_t value) { return LLVMConstInt(e->i64, value, false); }

static LLVMValueRef hidden_external(const emitter_t *e, const char *name, LLVMTypeRef type) {
  LLVMValueRef global = LLVMAddGlobal(e->module, type, name);
  LLVMSetVisibility(global, LLVMHiddenVisibility);
  return global;
}

/* A nameless constant of the object. */
static LLVMValueRef local(const emitter_t *e, LLVMValueRef value) {
  LLVMValueRef global = LLVMAddGlobal(e->module, LLVMTypeOf(value), "");
  LLVMSetInitializer(global, value);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
  return global;
}

static LLVMValueRef text(const emitter_t *e, const char *value) {
  return local(e, LLVMConstStringInContext2(e->context, value, strlen(value), false));
}

static LLVMValueRef record(const emitter_t *e, LLVMValueRef *fields, size_t count) {
  return LLVMConstStructInContext(e->context, fields, (unsigned)count, false);
}

/* A pointer to an array of |items|, all of one type; NULL when there are none. */
static LLVMValueRef array(const emitter_t *e, LLVMValueRef *items, int count) {
  if (count == 0) return LLVMConstNull(e->ptr);
  return local(e, LLVMConstArray2(LLVMTypeOf(items[0]), items, (uint64_t)count));
}

static LLVMValueRef texts(const emitter_t *e, const char *const *values, int count) {
  LLVMValueRef *items = O3_ARENA_ARRAY(e->arena, LLVMValueRef, (size_t)count + 1);
  if (!items) return NULL;
  for (int i = 0; i < count; ++i) items[i] = text(e, values[i]);
  return array(e, items, count);
}

/* ---- o3rt_tensor_t, o3rt_model_t ---- */

static LLVMValueRef dims(const emitter_t *e, const o3_interface_tensor_t *tensor) {
  LLVMValueRef items[O3_IR_MAX_RANK];
  for (int i = 0; i < tensor->rank; ++i) {
    LLVMValueRef fields[] = {int64(e, (uint64_t)tensor->dims[i].size), int32(e, tensor->dims[i].symbol),
                             int32(e, 0)};
    items[i] = record(e, fields, COUNT(fields));
  }
  return array(e, items, tensor->rank);
}

static LLVMValueRef tensors(const emitter_t *e, const o3_interface_tensor_t *values, int count) {
  LLVMValueRef *items = O3_ARENA_ARRAY(e->arena, LLVMValueRef, (size_t)count + 1);
  if (!items) return NULL;
  for (int i = 0; i < count; ++i) {
    LLVMValueRef fields[] = {text(e, values[i].name), dims(e, &values[i]), int32(e, values[i].rank),
                             int32(e, o3_dtype_info(values[i].dtype)->onnx)};
    items[i] = record(e, fields, COUNT(fields));
  }
  return array(e, items, count);
}

static LLVMValueRef kernels(const emitter_t *e, const o3_kernel_table_t *table) {
  LLVMValueRef *items = O3_ARENA_ARRAY(e->arena, LLVMValueRef, (size_t)table->count + 1);
  if (!items) return NULL;
  for (int i = 0; i < table->count; ++i) {
    const o3_kernel_row_t *row = &table->rows[i];
    LLVMValueRef fields[] = {text(e, row->name), text(e, row->kind), texts(e, row->nodes, row->num_nodes),
                             int32(e, row->num_nodes), int32(e, 0)};
    if (!fields[2]) return NULL;
    items[i] = record(e, fields, COUNT(fields));
  }
  return array(e, items, table->count);
}

/* A hidden function of the model's code. */
static LLVMValueRef entry(const emitter_t *e, const char *name, const char *suffix) {
  char text[80];
  snprintf(text, sizeof(text), "%s%s", name, suffix);
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), NULL, 0, false);
  LLVMValueRef function = LLVMGetNamedFunction(e->module, text);
  if (!function) function = LLVMAddFunction(e->module, text, type);
  LLVMSetVisibility(function, LLVMHiddenVisibility);
  return function;
}

static LLVMValueRef codes(const emitter_t *e, const o3_descriptor_t *d) {
  LLVMValueRef items[O3_TARGET_MAX_CODES];
  for (int i = 0; i < d->num_codes; ++i) {
    LLVMValueRef fields[] = {text(e, d->codes[i].name), int64(e, d->codes[i].cpu_features),
                             entry(e, "o3m_run", d->codes[i].suffix)};
    items[i] = record(e, fields, COUNT(fields));
  }
  return array(e, items, d->num_codes);
}

static LLVMValueRef compiled_model(const emitter_t *e, const o3_descriptor_t *d) {
  const o3_interface_t *face = d->interface;
  /* The last kind of code runs wherever the others do. */
  const char *suffix = d->num_codes ? d->codes[d->num_codes - 1].suffix : "";
  LLVMValueRef run = entry(e, "o3m_run", suffix);
  LLVMValueRef check = face->num_guards ? entry(e, "o3m_check", suffix) : LLVMConstNull(e->ptr);
  LLVMValueRef fields[] = {
      int32(e, O3RT_FORMAT),
      int32(e, d->opt_level),
      text(e, d->name),
      text(e, d->target),
      text(e, d->build_id),
      text(e, d->producer),
      int64(e, d->cpu_features),
      int64(e, d->constant_bytes),
      int32(e, face->num_inputs),
      int32(e, face->num_outputs),
      int32(e, face->num_symbols),
      int32(e, face->num_guards),
      tensors(e, face->inputs, face->num_inputs),
      tensors(e, face->outputs, face->num_outputs),
      texts(e, face->symbols, face->num_symbols),
      texts(e, face->guards, face->num_guards),
      check,
      run,
      kernels(e, d->kernels),
      int32(e, d->kernels->count),
      int32(e, d->num_codes),
      codes(e, d),
      d->on_gpu ? hidden_external(e, "o3m_gpu", e->i32) : LLVMConstNull(e->ptr),
      d->on_gpu ? hidden_external(e, "o3rt_cuda_driver", e->i32) : LLVMConstNull(e->ptr)};
  for (size_t i = 0; i < COUNT(fields); ++i)
    if (!fields[i]) return NULL;
  return record(e, fields, COUNT(fields));
}

/* ---- The module ---- */

/* const o3_model_t *<prefix>_model(void) { return &model; } */
static o3_status_t add_entry(const emitter_t *e, const char *prefix, LLVMValueRef model) {
  const char *name = o3_arena_printf(e->arena, "%s_model", prefix);
  O3_TRY_ALLOC(name);
  LLVMValueRef function = LLVMAddFunction(e->module, name, LLVMFunctionType(e->ptr, NULL, 0, false));
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(e->context);
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(e->context, function, ""));
  LLVMBuildRet(builder, model);
  LLVMDisposeBuilder(builder);
  return NULL;
}

static o3_status_t fill_module(const emitter_t *e, const o3_descriptor_t *descriptor) {
  LLVMValueRef compiled = compiled_model(e, descriptor);
  O3_TRY_ALLOC(compiled);
  LLVMValueRef global = hidden_external(e, "o3rt_compiled_model", LLVMTypeOf(compiled));
  LLVMSetInitializer(global, compiled);
  LLVMSetGlobalConstant(global, true);
  LLVMValueRef fields[] = {hidden_external(e, "o3rt_api", e->i32), global};
  return add_entry(e, descriptor->prefix, local(e, record(e, fields, COUNT(fields))));
}

static o3_status_t emit(const emitter_t *e, const char *path) {
  o3_llvm_settings_t settings = {
      .arch = O3_LLVM_X86, .cpu = "x86-64", .features = "", .level = LLVMCodeGenLevelDefault};
  LLVMTargetMachineRef machine;
  O3_TRY(o3_llvm_machine_create(&settings, &machine));
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetModuleDataLayout(e->module, layout);
  char *triple = LLVMGetTargetMachineTriple(machine);
  LLVMSetTarget(e->module, triple);
  char *message = NULL;
  bool failed = LLVMTargetMachineEmitToFile(machine, e->module, path, LLVMObjectFile, &message);
  LLVMDisposeMessage(triple);
  LLVMDisposeTargetData(layout);
  LLVMDisposeTargetMachine(machine);
  return failed ? o3_llvm_failure("the model's description cannot be written", message) : NULL;
}

o3_status_t o3_descriptor_write(const char *path, const o3_descriptor_t *descriptor) {
  O3_TRY(o3_symbol_prefix_check(descriptor->prefix));
  emitter_t e = {.arena = o3_arena_create()};
  O3_TRY_ALLOC(e.arena);
  e.context = LLVMContextCreate();
  e.module = LLVMModuleCreateWithNameInContext("o3_descriptor", e.context);
  e.i32 = LLVMInt32TypeInContext(e.context);
  e.i64 = LLVMInt64TypeInContext(e.context);
  e.ptr = LLVMPointerTypeInContext(e.context, 0);
  o3_status_t status = fill_module(&e, descriptor);
  if (!status) status = emit(&e, path);
  LLVMDisposeModule(e.module);
  LLVMContextDispose(e.context);
  o3_arena_destroy(e.arena);
  return status;
}

o3_status_t o3_symbol_prefix_check(const char *prefix) {
  static const char FIRST[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  static const char REST[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  bool ok = *prefix && strchr(FIRST, *prefix) && prefix[strspn(prefix, REST)] == '\0';
  if (ok) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          "symbol prefix '%s' is no C identifier (letters, digits and _, no digit first)",
                          prefix);
}
