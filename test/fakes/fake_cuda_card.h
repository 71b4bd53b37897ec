// What is behind the stand-in for libcuda.so.1 (fake_cuda.c): a library is built of it and of one file that
// defines |fake_cuda_card|. Codes are CUresult's: 0 is success.
#ifndef O3_TEST_FAKE_CUDA_CARD_H
#define O3_TEST_FAKE_CUDA_CARD_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_CUDA_MAX_ARGUMENTS = 64, FAKE_CUDA_ARGUMENT_BYTES = 128 };

// One parameter: a pointer, a number, or a tensor map by value.
typedef struct fake_cuda_argument {
  _Alignas(64) unsigned char bytes[FAKE_CUDA_ARGUMENT_BYTES];
} fake_cuda_argument_t;

typedef struct fake_cuda_launch {
  const void *kernel;
  unsigned grid[3], block[3];
  unsigned shared;   // bytes
  unsigned cluster;  // blocks along x
  fake_cuda_argument_t arguments[FAKE_CUDA_MAX_ARGUMENTS];
} fake_cuda_launch_t;

// The arguments of cuTensorMapEncodeTiled; with |lower| those of cuTensorMapEncodeIm2col, whose channels and
// pixels are |box|.
typedef struct fake_cuda_map {
  int type;
  unsigned rank;
  void *address;
  const uint64_t *sizes, *strides;
  const uint32_t *box, *steps;
  const int *lower, *upper;
  int interleave, swizzle, fill;
} fake_cuda_map_t;

typedef struct fake_cuda_card {
  void (*reset)(void);
  int (*capability)(void);  // 80: compute capability 8.0; where the test sets none
  int (*load)(void);
  const void *(*find)(const char *name);  // a kernel, or NULL
  const char *(*name)(const void *kernel);
  int (*parameters)(const void *kernel, const size_t **bytes);  // how many; of each
  int (*launch)(const fake_cuda_launch_t *launch);
  void *(*alloc)(size_t bytes);  // aligned to 256, or NULL
  void (*free)(void *memory);
  int (*map)(void *map, const fake_cuda_map_t *given);  // writes the 128 bytes of |map|
} fake_cuda_card_t;

extern const fake_cuda_card_t fake_cuda_card;

#endif
