// wgmma's arithmetic and layouts: D[64, n] (+)= A[64, 32 bytes of k] B[32 bytes of k, n] with sums in f32.
//
//     emu_operand_t b = {.element = EMU_F16, .lines = 256, .descriptor = db, .by_k = true};
//     emu_operand_read(&b, shared_window, b_bytes);         // b_bytes[256][32]: as they lie in shared memory
//     emu_product(EMU_F16, 256, a_bytes, b_bytes, sums);    // sums[64][256] += a_bytes[64][32] times these
//
// Descriptors are those of PTX for sm_90: bits 0 to 13 the address, 16 to 29 the leading and 32 to 45 the
// stride distance, all in 16 bytes; 62 and 63 the swizzle.
#ifndef O3_TEST_HOPPER_PRODUCT_H
#define O3_TEST_HOPPER_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "emu_element.h"

enum { EMU_PRODUCT_ROWS = 64, EMU_PRODUCT_K = 32, EMU_PRODUCT_COLUMNS = 256, EMU_WARPGROUP = 128 };

typedef struct emu_operand {
  emu_element_t element;
  int lines;  // rows of A, columns of B
  uint64_t descriptor;
  bool by_k;  // neighbours along k are neighbours in memory; else rows or columns are (of f16 and bf16 alone)
} emu_operand_t;

// |window|: what address 0 of shared memory is, a multiple of 256 KiB. |bytes|: 32 of each line.
void emu_operand_read(const emu_operand_t *operand, const char *window, uint8_t (*bytes)[EMU_PRODUCT_K]);
// NULL, or what the hardware would not take.
const char *emu_operand_refuse(const emu_operand_t *operand);

// The register |index| (0 to 3) of A that |thread| of a warpgroup has: its row, and the first of its 4 bytes
// of k.
void emu_product_a_place(int thread, int index, int *row, int *byte);
// The sum |index| (0 to n / 2 - 1) that |thread| has.
void emu_product_sum_place(int thread, int index, int *row, int *column);

void emu_product(emu_element_t element, int columns, uint8_t (*a)[EMU_PRODUCT_K], uint8_t (*b)[EMU_PRODUCT_K],
                 float (*sums)[EMU_PRODUCT_COLUMNS]);

#endif
