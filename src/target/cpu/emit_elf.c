/* From the llvm dialect to LLVM IR and an ELF object.
 *
 * o3m_run and o3m_check are hidden, all other functions internal. The weights o3w_* stay external with
 * default visibility: position-independent code then reaches them through the global offset table, whose
 * entries hold 64 bits, so that gigabytes of weights link however far they are; when they turn out near, the
 * linker relaxes the access to a direct one.
 */
#include <llvm-c/Core.h>
#include <stdio.h>
#include <string.h>

#include "target/cpu/cpu.h"
#include "target/llvm_code.h"

static void add_attribute(const o3_llvm_code_t *code, LLVMValueRef function, const char *key,
                          const char *value) {
  LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(code->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

/* Vectors are as wide as the target says, also where LLVM would be shy of 512 bits. */
static void set_attributes(const o3_llvm_code_t *code, o3_pass_env_t *env, LLVMValueRef function) {
  char width[16];
  snprintf(width, sizeof(width), "%d", env->machine->vector_bytes * 8);
  add_attribute(code, function, "target-cpu", env->machine->llvm_cpu);
  add_attribute(code, function, "target-features", env->machine->llvm_features);
  add_attribute(code, function, "prefer-vector-width", width);
}

/* o3m_run becomes o3m_run_x86_64_v4. */
static void rename_entries(const o3_llvm_code_t *code, const char *suffix) {
  static const char *const ENTRIES[] = {"o3m_run", "o3m_check"};
  char name[64];
  for (size_t i = 0; i < sizeof(ENTRIES) / sizeof(ENTRIES[0]); ++i) {
    LLVMValueRef function = LLVMGetNamedFunction(code->module, ENTRIES[i]);
    int length = snprintf(name, sizeof(name), "%s%s", ENTRIES[i], suffix);
    if (function) LLVMSetValueName2(function, name, (size_t)length);
  }
}

static void set_linkage(const o3_llvm_code_t *code, o3_pass_env_t *env) {
  for (LLVMValueRef f = LLVMGetFirstFunction(code->module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    bool entry = strcmp(name, "o3m_run") == 0 || strcmp(name, "o3m_check") == 0;
    if (strncmp(name, "o3rt_", 5) == 0 || entry) LLVMSetVisibility(f, LLVMHiddenVisibility);
    if (LLVMIsDeclaration(f)) continue;
    if (!entry) LLVMSetLinkage(f, LLVMInternalLinkage);
    set_attributes(code, env, f);
  }
}

/* O0 keeps the order of floating-point operations in any case (no fast-math flags are set there); it also
 * leaves the vectoriser out, to be an independent reference for it. Its few passes take what loops of
 * single elements are slow without; with them and the selector's lower level, code is made in a quarter to
 * half of the time of "default<O1>" and runs as fast. LLVM's own pipelines do not ask, either, whether a
 * second round of instcombine would find more, which is an error by default. */
static o3_status_t optimise(const o3_llvm_code_t *code, const o3_pass_env_t *env) {
  static const char REFERENCE[] =
      "globaldce,function(sroa,early-cse,simplifycfg,loop-mssa(licm),instcombine<no-verify-fixpoint>)";
  return o3_llvm_code_optimise(code, env->opt_level > 0 ? "default<O2>" : REFERENCE);
}

static o3_status_t prepare(o3_llvm_code_t *code, o3_pass_env_t *env, MlirModule module,
                           const o3_cpu_extension_t *extension) {
  o3_llvm_settings_t settings = {.arch = O3_LLVM_X86,
                                 .cpu = env->machine->llvm_cpu,
                                 .features = env->machine->llvm_features,
                                 .level = env->opt_level ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelLess};
  O3_TRY(o3_llvm_code_begin(code, &settings, module));
  set_linkage(code, env);
  if (env->code_suffix) rename_entries(code, env->code_suffix);
  if (extension) O3_TRY(extension->extend(code->module, extension->context));
  return optimise(code, env);
}

static o3_status_t emit_object(o3_pass_env_t *env, MlirModule module, const o3_cpu_extension_t *extension,
                               o3_artifact_t *artifact) {
  o3_llvm_code_t code = {0};
  o3_status_t status = prepare(&code, env, module, extension);
  if (!status) status = o3_llvm_code_emit(&code, LLVMObjectFile, artifact);
  o3_llvm_code_deinit(&code);
  return status;
}

o3_status_t o3_cpu_emit_object(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) {
  return emit_object(env, module, NULL, artifact);
}

o3_status_t o3_cpu_emit_extended(o3_pass_env_t *env, MlirModule module, const o3_cpu_extension_t *extension,
                                 o3_artifact_t *artifact) {
  return emit_object(env, module, extension, artifact);
}

o3_status_t o3_cpu_emit_llvm_ir(o3_pass_env_t *env, MlirModule module, o3_artifact_t *artifact) {
  o3_llvm_code_t code = {0};
  o3_status_t status = prepare(&code, env, module, NULL);
  if (!status) status = o3_llvm_code_print(&code, artifact);
  o3_llvm_code_deinit(&code);
  return status;
}
