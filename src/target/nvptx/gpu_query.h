/* What the driver tells of the first NVIDIA GPU in this machine. */
#ifndef O3_TARGET_NVPTX_GPU_QUERY_H
#define O3_TARGET_NVPTX_GPU_QUERY_H

#include "base/status.h"
#include "schedule/gpu.h"

/* The row of schedule/gpus.def that is closest, with the card's own figures. UNSUPPORTED without a driver or
 * card, or for a card older than any row. */
o3_status_t o3_gpu_query(o3_gpu_t *gpu) O3_MUST_USE;

#endif
