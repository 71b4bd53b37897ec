/* NVPTX reads some choices from LLVM's command line alone: 32-bit pointers into shared memory (without them
 * kernels spill) are set once, before the first machine is made. */
#include "target/nvptx/ptx.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/translate.h"

#define TRIPLE "nvptx64-nvidia-cuda"

typedef struct emitter {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetMachineRef machine;
} emitter_t;

static void initialize_nvptx(void) {
  static const char *const OPTIONS[] = {"o3c", "-nvptx-short-ptr"};
  LLVMParseCommandLineOptions(2, OPTIONS, "");
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

static o3_status_t take_message(char *message, const char *what) {
  o3_status_t status = o3_status_create(O3_STATUS_INTERNAL, "%s: %s", what, message ? message : "unknown");
  LLVMDisposeMessage(message);
  return status;
}

static o3_status_t create_machine(const o3_gpu_t *gpu, bool specific, LLVMTargetMachineRef *machine) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  LLVMTargetRef target;
  char *message = NULL, cpu[16], features[16];
  pthread_once(&once, initialize_nvptx);
  if (LLVMGetTargetFromTriple(TRIPLE, &target, &message)) return take_message(message, TRIPLE);
  snprintf(cpu, sizeof(cpu), "sm_%d%s", gpu->sm, specific ? "a" : "");
  snprintf(features, sizeof(features), "+ptx%d", gpu->ptx);
  *machine = LLVMCreateTargetMachine(target, TRIPLE, cpu, features, LLVMCodeGenLevelAggressive,
                                     LLVMRelocDefault, LLVMCodeModelDefault);
  return *machine ? NULL : o3_status_create(O3_STATUS_INTERNAL, "LLVM makes no machine for '%s'", cpu);
}

/* All that is no kernel is called from one: internal, so that it is inlined and goes. */
static void set_linkage(emitter_t *self) {
  for (LLVMValueRef f = LLVMGetFirstFunction(self->module); f; f = LLVMGetNextFunction(f)) {
    if (!LLVMIsDeclaration(f) && LLVMGetFunctionCallConv(f) != LLVMPTXKernelCallConv)
      LLVMSetLinkage(f, LLVMInternalLinkage);
  }
}

static o3_status_t optimise(emitter_t *self) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMPassBuilderOptionsSetLoopVectorization(options, false);
  LLVMPassBuilderOptionsSetSLPVectorization(options, false);
  LLVMErrorRef error = LLVMRunPasses(self->module, "default<O3>", self->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return NULL;
  char *message = LLVMGetErrorMessage(error);
  o3_status_t status = o3_status_create(O3_STATUS_INTERNAL, "LLVM's passes: %s", message);
  LLVMDisposeErrorMessage(message);
  return status;
}

static o3_status_t prepare(emitter_t *self, const o3_gpu_t *gpu, bool specific, MlirModule device) {
  char *message = NULL;
  O3_TRY(create_machine(gpu, specific, &self->machine));
  self->context = LLVMContextCreate();
  O3_TRY(o3_ir_translate(device, self->context, &self->module));
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(self->machine);
  LLVMSetModuleDataLayout(self->module, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(self->module, TRIPLE);
  set_linkage(self);
  if (LLVMVerifyModule(self->module, LLVMReturnStatusAction, &message))
    return take_message(message, "LLVM IR of the card's code");
  LLVMDisposeMessage(message);
  return optimise(self);
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

static o3_status_t write_ptx(emitter_t *self, o3_artifact_t *text) {
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(self->machine, self->module, LLVMAssemblyFile, &message, &buffer))
    return take_message(message, "code generation for the card");
  o3_status_t status = copy_out(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer), text);
  LLVMDisposeMemoryBuffer(buffer);
  return status;
}

static o3_status_t write_ir(emitter_t *self, o3_artifact_t *text) {
  char *ir = LLVMPrintModuleToString(self->module);
  o3_status_t status = copy_out(ir, strlen(ir), text);
  LLVMDisposeMessage(ir);
  return status;
}

static o3_status_t emit(const o3_gpu_t *gpu, bool specific, MlirModule device, o3_artifact_t *text,
                        o3_status_t (*write)(emitter_t *, o3_artifact_t *)) {
  emitter_t self = {0};
  *text = (o3_artifact_t){0};
  o3_status_t status = prepare(&self, gpu, specific, device);
  if (!status) status = write(&self, text);
  release(&self);
  return status;
}

o3_status_t o3_ptx_emit(const o3_gpu_t *gpu, bool specific, MlirModule device, o3_artifact_t *text) {
  return emit(gpu, specific, device, text, write_ptx);
}

o3_status_t o3_ptx_emit_llvm_ir(const o3_gpu_t *gpu, bool specific, MlirModule device, o3_artifact_t *text) {
  return emit(gpu, specific, device, text, write_ir);
}
