/* From the llvm dialect to LLVM IR and an ELF object.
 *
 * o3m_run and o3m_check are hidden, all other functions internal. The weights o3w_* stay external with
 * default visibility: position-independent code then reaches them through the global offset table, whose
 * entries hold 64 bits, so that gigabytes of weights link however far they are; when they turn out near, the
 * linker relaxes the access to a direct one.
 */
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/translate.h"
#include "target/cpu/cpu.h"

typedef struct emitter {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetMachineRef machine;
} emitter_t;

static void initialize_x86(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

static o3_status_t take_message(char *message, const char *what) {
  o3_status_t status = o3_status_create(O3_STATUS_INTERNAL, "%s: %s", what, message ? message : "unknown");
  LLVMDisposeMessage(message);
  return status;
}

static o3_status_t create_machine(o3_pass_env_t *env, LLVMTargetMachineRef *machine) {
  static const char TRIPLE[] = "x86_64-unknown-linux-gnu";
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  LLVMTargetRef target;
  char *message = NULL;
  pthread_once(&once, initialize_x86);
  if (LLVMGetTargetFromTriple(TRIPLE, &target, &message)) return take_message(message, TRIPLE);
  LLVMCodeGenOptLevel level = env->opt_level ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelDefault;
  *machine = LLVMCreateTargetMachine(target, TRIPLE, env->machine->llvm_cpu, env->machine->llvm_features,
                                     level, LLVMRelocPIC, LLVMCodeModelSmall);
  if (*machine) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "LLVM makes no machine for cpu '%s'", env->machine->llvm_cpu);
}

static void add_attribute(emitter_t *self, LLVMValueRef function, const char *key, const char *value) {
  LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(self->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

/* Vectors are as wide as the target says, also where LLVM would be shy of 512 bits. */
static void set_attributes(emitter_t *self, o3_pass_env_t *env, LLVMValueRef function) {
  char width[16];
  snprintf(width, sizeof(width), "%d", env->machine->vector_bytes * 8);
  add_attribute(self, function, "target-cpu", env->machine->llvm_cpu);
  add_attribute(self, function, "target-features", env->machine->llvm_features);
  add_attribute(self, function, "prefer-vector-width", width);
}

/* o3m_run becomes o3m_run_x86_64_v4. */
static void rename_entries(emitter_t *self, const char *suffix) {
  static const char *const ENTRIES[] = {"o3m_run", "o3m_check"};
  char name[64];
  for (size_t i = 0; i < sizeof(ENTRIES) / sizeof(ENTRIES[0]); ++i) {
    LLVMValueRef function = LLVMGetNamedFunction(self->module, ENTRIES[i]);
    int length = snprintf(name, sizeof(name), "%s%s", ENTRIES[i], suffix);
    if (function) LLVMSetValueName2(function, name, (size_t)length);
  }
}

static void set_linkage(emitter_t *self, o3_pass_env_t *env) {
  for (LLVMValueRef f = LLVMGetFirstFunction(self->module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    bool entry = strcmp(name, "o3m_run") == 0 || strcmp(name, "o3m_check") == 0;
    if (strncmp(name, "o3rt_", 5) == 0 || entry) LLVMSetVisibility(f, LLVMHiddenVisibility);
    if (LLVMIsDeclaration(f)) continue;
    if (!entry) LLVMSetLinkage(f, LLVMInternalLinkage);
    set_attributes(self, env, f);
  }
}

/* O0 keeps the order of floating-point operations in any case (no fast-math flags are set there); it also
 * leaves the vectorisers out, to be an independent reference for them. */
static o3_status_t optimise(emitter_t *self, o3_pass_env_t *env) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopVectorization(options, env->opt_level > 0);
  LLVMPassBuilderOptionsSetSLPVectorization(options, env->opt_level > 0);
  LLVMPassBuilderOptionsSetLoopInterleaving(options, env->opt_level > 0);
  LLVMErrorRef error =
      LLVMRunPasses(self->module, env->opt_level > 0 ? "default<O2>" : "default<O1>", self->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return NULL;
  char *message = LLVMGetErrorMessage(error);
  o3_status_t status = o3_status_create(O3_STATUS_INTERNAL, "LLVM's passes: %s", message);
  LLVMDisposeErrorMessage(message);
  return status;
}

static o3_status_t prepare(emitter_t *self, o3_pass_env_t *env, MlirModule module,
                           const o3_cpu_extension_t *extension) {
  char *message = NULL;
  O3_TRY(create_machine(env, &self->machine));
  self->context = LLVMContextCreate();
  O3_TRY(o3_ir_translate(module, self->context, &self->module));
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(self->machine);
  LLVMSetModuleDataLayout(self->module, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(self->module, "x86_64-unknown-linux-gnu");
  set_linkage(self, env);
  if (env->code_suffix) rename_entries(self, env->code_suffix);
  if (extension) O3_TRY(extension->extend(self->module, extension->context));
  if (LLVMVerifyModule(self->module, LLVMReturnStatusAction, &message))
    return take_message(message, "LLVM IR");
  LLVMDisposeMessage(message);
  return optimise(self, env);
}

static void release(emitter_t *self) {
  if (self->module) LLVMDisposeModule(self->module);
  if (self->context) LLVMContextDispose(self->context);
  if (self->machine) LLVMDisposeTargetMachine(self->machine);
}

static o3_status_t copy_out(const void *data, size_t size, o3_artifact_t *artifact) {
  artifact->data = malloc(size + 1);
  O3_TRY_ALLOC(artifact->data);
  memcpy(artifact->data, data, size);
  ((char *)artifact->data)[size] = 0;
  artifact->size = size;
  return NULL;
}

static o3_status_t emit_object(emitter_t *self, o3_artifact_t *artifact) {
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(self->machine, self->module, LLVMObjectFile, &message, &buffer))
    return take_message(message, "code generation");
  o3_status_t status = copy_out(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer), artifact);
  LLVMDisposeMemoryBuffer(buffer);
  return status;
}

static o3_status_t print_module(emitter_t *self, o3_artifact_t *artifact) {
  char *text = LLVMPrintModuleToString(self->module);
  o3_status_t status = copy_out(text, strlen(text), artifact);
  LLVMDisposeMessage(text);
  return status;
}

static o3_status_t emit(o3_pass_env_t *env, MlirModule module, const o3_cpu_extension_t *extension,
                        o3_artifact_t *artifact, o3_status_t (*write)(emitter_t *, o3_artifact_t *)) {
  emitter_t self = {0};
  *artifact = (o3_artifact_t){0};
  o3_status_t status = prepare(&self, env, module, extension);
  if (!status) status = write(&self, artifact);
  release(&self);
  return status;
}

o3_status_t o3_cpu_emit_object(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) {
  return emit(env, module, NULL, artifact, emit_object);
}

o3_status_t o3_cpu_emit_extended(o3_pass_env_t *env, MlirModule module, const o3_cpu_extension_t *extension,
                                 o3_artifact_t *artifact) {
  return emit(env, module, extension, artifact, emit_object);
}

o3_status_t o3_cpu_emit_llvm_ir(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) {
  return emit(env, module, NULL, artifact, print_module);
}
