/* Images with a border of zeros around them, which is how padded windows are read. */
#ifndef O3_TARGET_CPU_HALO_H
#define O3_TARGET_CPU_HALO_H

#include "ir/build.h"
#include "ir/pass.h"

/* Replaces |op| by a copy of rows, if it is a linalg.generic on buffers that writes, for each position, the
 * element of another buffer at that position less an offset, or a constant where that is outside; |done|
 * tells whether it was. */
o3_status_t o3_halo_emit(o3_pass_env_t *env, MlirOperation op, bool *done) O3_MUST_USE;

#endif
