/* GPUs: what is known of a card, for schedules and limits. src/schedule/gpus.def has a row for each,
 * and a hardware file (hardware.h) may say other figures. */
#ifndef O3_SCHEDULE_GPU_H
#define O3_SCHEDULE_GPU_H

#include <stdbool.h>
#include <stdint.h>

/* Matrix instructions, of the warp or of a group of warps. A card has those of its bits. */
typedef enum o3_gpu_matrix {
#define O3_GPU_MATRIX(id, bit, name, what) O3_GPU_##id = bit,
#include "schedule/gpu_matrix.def"
#undef O3_GPU_MATRIX
} o3_gpu_matrix_t;

typedef struct o3_gpu {
  const char *name;    /* as in --target: "hopper", "sm_86" */
  const char *summary; /* the card that the figures are of */
  int sm;              /* 90: compute capability 9.0 */
  int ptx;             /* version of the PTX that is written: 80 is 8.0 */
  unsigned matrix;     /* O3_GPU_WMMA, ... */
  int multiprocessors;
  int threads_per_sm;
  int64_t registers_per_sm; /* of 32 bits */
  int64_t shared_per_block; /* bytes, the most that one block can have */
  int64_t shared_per_sm;
  int64_t l2_bytes;
  int cluster;        /* blocks that a cluster can have; 1: there are none */
  double memory_gbps; /* GB/s, the vendor's figure */
  double fp32_tflops; /* without matrix instructions */
  double fp16_tflops; /* matrix instructions, dense, sums in fp32 */
} o3_gpu_t;

/* Threads of a block of a kernel that no schedule is made for. */
enum {
  O3_GPU_BLOCK_THREADS = 256,
  O3_GPU_MAX_BLOCK_THREADS = 1024,
  O3_GPU_WARP = 32,
  /* Bytes of shared memory that every block may have without being asked for by the launch. */
  O3_GPU_PLAIN_SHARED = 48 << 10,
  /* Bytes of a multiprocessor's shared memory that the card takes for each block, besides the block's own. */
  O3_GPU_RESERVED_SHARED = 1 << 10
};

/* Blocks of |block| threads and |shared_bytes| that a multiprocessor is to have at once: together |threads|
 * threads, or what its shared memory has room for; at least 1. */
int o3_gpu_resident_blocks(const o3_gpu_t *gpu, int threads, int block, int64_t shared_bytes);

/* The row of compute capability |sm|, or of the closest one below it of the same generation; NULL when there
 * is none. */
const o3_gpu_t *o3_gpu_of_capability(int sm);
/* The row that is called |name|; NULL when there is none. */
const o3_gpu_t *o3_gpu_find(const char *name);
/* NULL past the end. */
const o3_gpu_t *o3_gpu_at(int index);

#endif
