/* LLVM takes some choices from its command line alone. 32-bit pointers into shared memory: without them
 * kernels of NVPTX spill. No SLP vectoriser, which "default<O2>" turns on whatever the options of the pass
 * builder say: our kernels are vectors already, and on the long straight code that calls them it needs time
 * that grows with its square, 5 to 37 % of what code generation took, for code of the same speed. */
#include "target/llvm_code.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ir/translate.h"

static void choose(void) {
  static const char *const OPTIONS[] = {"o3c", "-nvptx-short-ptr", "-vectorize-slp=0"};
  LLVMParseCommandLineOptions((int)(sizeof(OPTIONS) / sizeof(OPTIONS[0])), OPTIONS, "");
}

static void initialize_x86(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

static void initialize_nvptx(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

typedef struct arch {
  const char *triple;
  void (*initialize)(void);
  LLVMRelocMode reloc;
  LLVMCodeModel model;
  pthread_once_t once;
} arch_t;

static arch_t archs[] = {
    [O3_LLVM_X86] = {"x86_64-unknown-linux-gnu", initialize_x86, LLVMRelocPIC, LLVMCodeModelSmall,
                     PTHREAD_ONCE_INIT},
    [O3_LLVM_NVPTX] = {"nvptx64-nvidia-cuda", initialize_nvptx, LLVMRelocDefault, LLVMCodeModelDefault,
                       PTHREAD_ONCE_INIT},
};

o3_status_t o3_llvm_failure(const char *what, char *message) {
  o3_status_t status = o3_status_create(O3_STATUS_INTERNAL, "%s: %s", what, message ? message : "unknown");
  LLVMDisposeMessage(message);
  return status;
}

o3_status_t o3_llvm_machine_create(const o3_llvm_settings_t *settings, LLVMTargetMachineRef *machine) {
  static pthread_once_t chosen = PTHREAD_ONCE_INIT;
  arch_t *arch = &archs[settings->arch];
  LLVMTargetRef target;
  char *message = NULL;
  *machine = NULL;
  pthread_once(&chosen, choose);
  pthread_once(&arch->once, arch->initialize);
  if (LLVMGetTargetFromTriple(arch->triple, &target, &message)) return o3_llvm_failure(arch->triple, message);
  *machine = LLVMCreateTargetMachine(target, arch->triple, settings->cpu, settings->features, settings->level,
                                     arch->reloc, arch->model);
  if (*machine) return NULL;
  return o3_status_create(O3_STATUS_INTERNAL, "LLVM makes no machine for cpu '%s' of %s", settings->cpu,
                          arch->triple);
}

o3_status_t o3_llvm_code_begin(o3_llvm_code_t *code, const o3_llvm_settings_t *settings, MlirModule module) {
  O3_TRY(o3_llvm_machine_create(settings, &code->machine));
  code->context = LLVMContextCreate();
  O3_TRY(o3_ir_translate(module, code->context, &code->module));
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(code->machine);
  LLVMSetModuleDataLayout(code->module, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(code->module, archs[settings->arch].triple);
  return NULL;
}

o3_status_t o3_llvm_code_optimise(const o3_llvm_code_t *code, const char *pipeline) {
  char *message = NULL;
  if (LLVMVerifyModule(code->module, LLVMReturnStatusAction, &message))
    return o3_llvm_failure("LLVM IR", message);
  LLVMDisposeMessage(message);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(code->module, pipeline, code->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return NULL;
  char *why = LLVMGetErrorMessage(error);
  o3_status_t status = o3_status_create(O3_STATUS_INTERNAL, "LLVM's passes: %s", why);
  LLVMDisposeErrorMessage(why);
  return status;
}

static o3_status_t copy_out(const void *data, size_t size, o3_artifact_t *artifact) {
  artifact->data = malloc(size + 1);
  O3_TRY_ALLOC(artifact->data);
  memcpy(artifact->data, data, size);
  ((char *)artifact->data)[size] = 0;
  artifact->size = size;
  return NULL;
}

o3_status_t o3_llvm_code_emit(const o3_llvm_code_t *code, LLVMCodeGenFileType type, o3_artifact_t *artifact) {
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  *artifact = (o3_artifact_t){0};
  if (LLVMTargetMachineEmitToMemoryBuffer(code->machine, code->module, type, &message, &buffer))
    return o3_llvm_failure("code generation", message);
  o3_status_t status = copy_out(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer), artifact);
  LLVMDisposeMemoryBuffer(buffer);
  return status;
}

o3_status_t o3_llvm_code_print(const o3_llvm_code_t *code, o3_artifact_t *artifact) {
  char *text = LLVMPrintModuleToString(code->module);
  *artifact = (o3_artifact_t){0};
  o3_status_t status = copy_out(text, strlen(text), artifact);
  LLVMDisposeMessage(text);
  return status;
}

void o3_llvm_code_deinit(o3_llvm_code_t *code) {
  if (code->module) LLVMDisposeModule(code->module);
  if (code->context) LLVMContextDispose(code->context);
  if (code->machine) LLVMDisposeTargetMachine(code->machine);
}
