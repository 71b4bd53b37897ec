#include "schedule/gpu.h"

#include <stddef.h>
#include <string.h>

static const o3_gpu_t GPUS[] = {
#define O3_GPU(id, title, card, capability, version, kinds, sms, threads, block_kib, sm_kib, l2_mib, \
               cluster_blocks, gbps, fp32, fp16)                                                     \
  {.name = title,                                                                                    \
   .summary = "NVIDIA GPU like " card,                                                               \
   .sm = capability,                                                                                 \
   .ptx = version,                                                                                   \
   .matrix = kinds,                                                                                  \
   .multiprocessors = sms,                                                                           \
   .threads_per_sm = threads,                                                                        \
   .registers_per_sm = 65536,                                                                        \
   .shared_per_block = (block_kib) * INT64_C(1024),                                                  \
   .shared_per_sm = (sm_kib) * INT64_C(1024),                                                        \
   .l2_bytes = (l2_mib) * INT64_C(1048576),                                                          \
   .cluster = cluster_blocks,                                                                        \
   .memory_gbps = gbps,                                                                              \
   .fp32_tflops = fp32,                                                                              \
   .fp16_tflops = fp16},
#include "schedule/gpus.def"
#undef O3_GPU
};
enum { NUM_GPUS = sizeof(GPUS) / sizeof(GPUS[0]) };

int o3_gpu_resident_blocks(const o3_gpu_t *gpu, int threads, int block, int64_t shared_bytes) {
  int64_t blocks = threads / block, room = gpu->shared_per_sm / (shared_bytes + O3_GPU_RESERVED_SHARED);
  if (blocks > room) blocks = room;
  return blocks > 1 ? (int)blocks : 1;
}

const o3_gpu_t *o3_gpu_at(int index) { return index >= 0 && index < NUM_GPUS ? &GPUS[index] : NULL; }

const o3_gpu_t *o3_gpu_find(const char *name) {
  for (int i = 0; i < NUM_GPUS; ++i)
    if (!strcmp(GPUS[i].name, name)) return &GPUS[i];
  return NULL;
}

/* Plain code for 8.0 runs on 8.x, that for 9.0 on 9.x; figures of a close relative are better than none. */
const o3_gpu_t *o3_gpu_of_capability(int sm) {
  const o3_gpu_t *best = NULL;
  for (int i = 0; i < NUM_GPUS; ++i) {
    bool fits = GPUS[i].sm <= sm && GPUS[i].sm / 10 == sm / 10;
    if (fits && (!best || GPUS[i].sm > best->sm)) best = &GPUS[i];
  }
  return best;
}
