/* From the llvm dialect to LLVM IR. */
#ifndef O3_IR_TRANSLATE_H
#define O3_IR_TRANSLATE_H

#include <llvm-c/Types.h>

#include "ir/ir.h"

/* The LLVM module of |module|, which must be in the llvm dialect; made in |context|, the caller's to dispose.
 * INTERNAL with MLIR's reason when an op has no translation. */
o3_status_t o3_ir_translate(MlirModule module, LLVMContextRef context, LLVMModuleRef *llvm_module)
    O3_MUST_USE;

#endif
