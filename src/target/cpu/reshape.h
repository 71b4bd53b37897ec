/* memref.expand_shape and memref.collapse_shape without upstream's expansion of them. */
#ifndef O3_TARGET_CPU_RESHAPE_H
#define O3_TARGET_CPU_RESHAPE_H

#include "ir/ir.h"

/* Replaces both ops, anywhere in |root|, by memref.reinterpret_cast of what they reshape. Upstream's
 * expand-strided-metadata (LLVM 22.1) crashes on a collapsed group of two dynamic sizes. */
o3_status_t o3_cpu_replace_reshapes(MlirOperation root) O3_MUST_USE;

#endif
