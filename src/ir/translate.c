#include "ir/translate.h"

#include <mlir-c/Target/LLVMIR.h>

#include "ir/context.h"

o3_status_t o3_ir_translate(MlirModule module, LLVMContextRef context, LLVMModuleRef *llvm_module) {
  o3_diagnostics_t *diagnostics = o3_diagnostics_begin(mlirModuleGetContext(module));
  *llvm_module = mlirTranslateModuleToLLVMIR(mlirModuleGetOperation(module), context);
  return o3_diagnostics_end(diagnostics, *llvm_module != NULL, O3_STATUS_INTERNAL, "translation to LLVM IR");
}
