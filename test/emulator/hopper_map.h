// Tensor maps of the emulated card: what cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col are given is kept
// in the 128 bytes of the map, and copies follow it.
//
//     int code = emu_map_encode(map, &given);               // 0, or 1
//     emu_map_load(map, stage, (int[]){k, row, 0, 0});      // a box: zeros for what is outside of the tensor
//
// In shared memory the order of 16-byte pieces within 128 bytes follows the address, as the hardware's
// swizzle does, so destinations are the true ones (blocks' shared memory starts at multiples of 1024).
#ifndef O3_TEST_HOPPER_MAP_H
#define O3_TEST_HOPPER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/fakes/fake_cuda_card.h"

enum { EMU_MAP_BYTES = 128, EMU_MAP_RANK = 5 };

// CUtensorMapSwizzle.
typedef enum emu_swizzle { EMU_SWIZZLE_NONE, EMU_SWIZZLE_32, EMU_SWIZZLE_64, EMU_SWIZZLE_128 } emu_swizzle_t;

// The address of the byte that has |address| without a swizzle.
static inline uintptr_t emu_swizzled(uintptr_t address, emu_swizzle_t swizzle) {
  const uintptr_t bits =
      ((uintptr_t)1 << swizzle) - 1;  // of the 16-byte piece, taken from those of the 128-byte line
  return address ^ ((address >> 7 & bits) << 4);
}

// 1 (CUDA_ERROR_INVALID_VALUE) for what the driver does not take or this does not emulate; a line on stderr
// says why.
int emu_map_encode(void *map, const fake_cuda_map_t *given);

// Whether |map| was made by one of these, of windows or not; NULL or why it is not.
const char *emu_map_refuse(const void *map, bool windows, int rank);

// Bytes that a load counts for its barrier.
size_t emu_map_bytes(const void *map);

// Copies; |at|: coordinates, innermost first; |offsets|: of the tap, along x and y.
void emu_map_load(const void *map, char *shared, const int *at);
void emu_map_load_windows(const void *map, char *shared, const int *at, const int *offsets);
void emu_map_store(const void *map, const char *shared, const int *at);

#endif
