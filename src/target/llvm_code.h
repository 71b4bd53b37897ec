/* From a module in the llvm dialect to an object or text, through LLVM: what all back ends do the same way.
 *
 *   o3_llvm_code_t code = {0};
 *   o3_status_t status = o3_llvm_code_begin(&code, &settings, module);
 *   ... the back end sets linkages and attributes on code.module ...
 *   if (!status) status = o3_llvm_code_optimise(&code, "default<O2>");
 *   if (!status) status = o3_llvm_code_emit(&code, LLVMObjectFile, artifact);
 *   o3_llvm_code_deinit(&code);
 */
#ifndef O3_TARGET_LLVM_CODE_H
#define O3_TARGET_LLVM_CODE_H

#include <llvm-c/TargetMachine.h>

#include "target/target.h"

typedef enum o3_llvm_arch { O3_LLVM_X86, O3_LLVM_NVPTX } o3_llvm_arch_t;

typedef struct o3_llvm_settings {
  o3_llvm_arch_t arch;
  const char *cpu, *features; /* as LLVM names them: "znver4", "+avx2" */
  LLVMCodeGenOptLevel level;
} o3_llvm_settings_t;

/* Begins as zeros; deinit takes it at any point. */
typedef struct o3_llvm_code {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetMachineRef machine;
} o3_llvm_code_t;

/* A machine, the caller's to dispose. x86 code is position-independent. */
o3_status_t o3_llvm_machine_create(const o3_llvm_settings_t *settings, LLVMTargetMachineRef *machine)
    O3_MUST_USE;

/* |code| gets a machine and the translation of |module|, with the machine's triple and data layout. */
o3_status_t o3_llvm_code_begin(o3_llvm_code_t *code, const o3_llvm_settings_t *settings, MlirModule module)
    O3_MUST_USE;

/* Verifies the module and runs |pipeline|, in the syntax of `opt -passes`. */
o3_status_t o3_llvm_code_optimise(const o3_llvm_code_t *code, const char *pipeline) O3_MUST_USE;

/* An object or assembly; a NUL follows the bytes. */
o3_status_t o3_llvm_code_emit(const o3_llvm_code_t *code, LLVMCodeGenFileType type, o3_artifact_t *artifact)
    O3_MUST_USE;

/* LLVM IR as text. */
o3_status_t o3_llvm_code_print(const o3_llvm_code_t *code, o3_artifact_t *artifact) O3_MUST_USE;

void o3_llvm_code_deinit(o3_llvm_code_t *code);

/* |what| and LLVM's |message|, which is disposed of, as an internal error. */
o3_status_t o3_llvm_failure(const char *what, char *message) O3_MUST_USE;

#endif
