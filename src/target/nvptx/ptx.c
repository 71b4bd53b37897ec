#include "target/nvptx/ptx.h"

#include <llvm-c/Core.h>
#include <stdio.h>
#include <string.h>

#include "target/llvm_code.h"

/* All that is no kernel is called from one: internal, so that it is inlined and goes. */
static void set_linkage(const o3_llvm_code_t *code) {
  for (LLVMValueRef f = LLVMGetFirstFunction(code->module); f; f = LLVMGetNextFunction(f)) {
    if (!LLVMIsDeclaration(f) && LLVMGetFunctionCallConv(f) != LLVMPTXKernelCallConv)
      LLVMSetLinkage(f, LLVMInternalLinkage);
  }
}

/* .sync is in the name of what waits for other threads of the warp, .aligned in that of what all of them must
 * run together: vote.sync has the first alone, barrier.cluster.arrive.aligned the second. */
static bool runs_together(LLVMValueRef instruction) {
  if (!LLVMIsACallInst(instruction)) return false;
  LLVMValueRef called = LLVMGetCalledValue(instruction);
  if (!LLVMIsAInlineAsm(called)) return false;
  size_t length;
  const char *text = LLVMGetInlineAsmAsmString(called, &length);
  return strstr(text, ".sync") || strstr(text, ".aligned");
}

/* Assembly of a warp, or of more, is for all of its threads at once: no branch may be put around it that some
 * take. What is in MLIR has no attribute for that. */
static void mark_convergent(const o3_llvm_code_t *code) {
  static const char NAME[] = "convergent";
  LLVMContextRef context = LLVMGetModuleContext(code->module);
  unsigned kind = LLVMGetEnumAttributeKindForName(NAME, sizeof(NAME) - 1);
  LLVMAttributeRef convergent = LLVMCreateEnumAttribute(context, kind, 0);
  for (LLVMValueRef f = LLVMGetFirstFunction(code->module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        if (runs_together(i)) LLVMAddCallSiteAttribute(i, LLVMAttributeFunctionIndex, convergent);
}

static o3_status_t prepare(o3_llvm_code_t *code, const o3_gpu_t *gpu, bool specific, MlirModule device) {
  char cpu[16], features[16];
  snprintf(cpu, sizeof(cpu), "sm_%d%s", gpu->sm, specific ? "a" : "");
  snprintf(features, sizeof(features), "+ptx%d", gpu->ptx);
  o3_llvm_settings_t settings = {
      .arch = O3_LLVM_NVPTX, .cpu = cpu, .features = features, .level = LLVMCodeGenLevelAggressive};
  O3_TRY(o3_llvm_code_begin(code, &settings, device));
  set_linkage(code);
  mark_convergent(code);
  return o3_llvm_code_optimise(code, "default<O3>");
}

o3_status_t o3_ptx_emit(const o3_gpu_t *gpu, bool specific, MlirModule device, o3_artifact_t *text) {
  o3_llvm_code_t code = {0};
  o3_status_t status = prepare(&code, gpu, specific, device);
  if (!status) status = o3_llvm_code_emit(&code, LLVMAssemblyFile, text);
  o3_llvm_code_deinit(&code);
  return o3_status_annotate(status, "the card's code");
}

o3_status_t o3_ptx_emit_llvm_ir(const o3_gpu_t *gpu, bool specific, MlirModule device, o3_artifact_t *text) {
  o3_llvm_code_t code = {0};
  o3_status_t status = prepare(&code, gpu, specific, device);
  if (!status) status = o3_llvm_code_print(&code, text);
  o3_llvm_code_deinit(&code);
  return o3_status_annotate(status, "the card's code");
}
