/* From device code in MLIR to PTX text, and to machine code where NVIDIA's assembler is found. */
#ifndef O3_TARGET_NVPTX_PTX_H
#define O3_TARGET_NVPTX_PTX_H

#include "ir/pass.h"
#include "schedule/gpu.h"
#include "target/target.h"

/* PTX of |device|, a module of the llvm dialect that holds kernels (nvvm.kernel). |specific|: for this
 * architecture alone (sm_90a), which wgmma needs. The text is NUL-terminated and the caller's. */
o3_status_t o3_ptx_emit(const o3_gpu_t *gpu, bool specific, MlirModule device, o3_artifact_t *text)
    O3_MUST_USE;

/* LLVM IR of the same, optimised. */
o3_status_t o3_ptx_emit_llvm_ir(const o3_gpu_t *gpu, bool specific, MlirModule device, o3_artifact_t *text)
    O3_MUST_USE;

/* The path of ptxas: $O3_PTXAS, in PATH, or where CUDA installs it; NULL when there is none. |O3_PTXAS| set
 * to an empty text turns it off. Malloc'ed. */
char *o3_ptxas_find(void);

/* Machine code of |ptx| by the assembler at |ptxas|; |report| receives what ptxas -v says (malloc'ed), or
 * NULL. UNSUPPORTED: this ptxas does not know the card, or such PTX. */
o3_status_t o3_ptxas_run(const char *ptxas, const o3_gpu_t *gpu, bool specific, const o3_artifact_t *ptx,
                         o3_artifact_t *cubin, char **report) O3_MUST_USE;

#endif
