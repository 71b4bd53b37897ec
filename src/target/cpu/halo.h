/* Images with a border of zeros around them, which is how padded windows are read. */
#ifndef O3_TARGET_CPU_HALO_H
#define O3_TARGET_CPU_HALO_H

#include "ir/build.h"
#include "ir/pass.h"

/* Replaces |op| by a copy of rows, if it is a linalg.generic on buffers that writes, for each position, the
 * element of another buffer at that position less an offset, or a constant where that is outside; |done|
 * tells whether it was. */
o3_status_t o3_halo_emit(o3_pass_env_t *env, MlirOperation op, bool *done) O3_MUST_USE;

/* Writes on |op|, on tensors or buffers, how it will be copied (o3.schedule), if it is such an op. */
o3_status_t o3_halo_schedule(o3_pass_env_t *env, MlirOperation op, bool *done) O3_MUST_USE;

/* What such an op does. */
typedef struct o3_halo {
  MlirValue from; /* tensor or buffer */
  int rank;
  int64_t lows[O3_IR_MAX_RANK]; /* elements of the border before |from|, along each of its dimensions */
  bool clamped[O3_IR_MAX_RANK]; /* whether there is a border along it, perhaps an empty one */
} o3_halo_t;

/* Whether |op|, on tensors or buffers, is one whose dimensions are those of |from|, with a border of zeros.
 */
bool o3_halo_read(MlirOperation op, o3_halo_t *halo);

#endif
