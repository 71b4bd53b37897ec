#include "hopper_product.h"

#include <stddef.h>
#include <string.h>

#include "hopper_map.h"

// ---- Descriptors ----

typedef struct descriptor {
  uintptr_t start, leading, stride;  // bytes
  emu_swizzle_t swizzle;
  int line_bytes;  // of a row of the swizzled pattern
} descriptor_t;

static descriptor_t decode(uint64_t bits) {
  static const emu_swizzle_t kSwizzles[] = {EMU_SWIZZLE_NONE, EMU_SWIZZLE_128, EMU_SWIZZLE_64,
                                            EMU_SWIZZLE_32};
  descriptor_t d = {.start = (bits & 0x3fff) << 4,
                    .leading = (bits >> 16 & 0x3fff) << 4,
                    .stride = (bits >> 32 & 0x3fff) << 4,
                    .swizzle = kSwizzles[bits >> 62]};
  d.line_bytes = 16 << d.swizzle;
  return d;
}

// Patterns start at multiples of their 8 lines; starts may be moved along a line, which hardware and this
// do before the swizzle. Other bases (bits 49 to 51) are not emulated.
const char *emu_operand_refuse(const emu_operand_t *operand) {
  const descriptor_t d = decode(operand->descriptor);
  if (operand->descriptor >> 49 & 7) return "a descriptor with a base offset is not emulated";
  if (operand->descriptor & 0x3ff1c000c000c000) return "bits of a descriptor that have no use are set";
  if (operand->by_k && d.swizzle && d.start % (8 * (uintptr_t)d.line_bytes) >= (uintptr_t)d.line_bytes)
    return "a descriptor's matrix starts within its swizzle's pattern";
  if (!operand->by_k && emu_element_bytes(operand->element) != 2) return "only f16 and bf16 are transposed";
  return NULL;
}

static uintptr_t byte_by_k(const descriptor_t *d, int line, int byte) {
  uintptr_t at = (uintptr_t)(line / 8) * d->stride + (uintptr_t)(line % 8 * d->line_bytes);
  if (d->swizzle == EMU_SWIZZLE_NONE)
    return d->start + at + (uintptr_t)(byte / 16) * d->leading + (uintptr_t)(byte % 16);
  return d->start + at + (uintptr_t)byte;
}

// Halves; without a swizzle the two distances change places.
static uintptr_t byte_across(const descriptor_t *d, int line, int k) {
  int each = d->line_bytes / 2;
  uintptr_t along = d->swizzle ? d->leading : d->stride, down = d->swizzle ? d->stride : d->leading;
  return d->start + (uintptr_t)(line / each) * along + (uintptr_t)(k / 8) * down +
         (uintptr_t)(k % 8 * d->line_bytes) + (uintptr_t)(line % each * 2);
}

void emu_operand_read(const emu_operand_t *operand, const char *window, uint8_t (*bytes)[EMU_PRODUCT_K]) {
  enum { WINDOW_MASK = 0x3ffff };
  const descriptor_t d = decode(operand->descriptor);
  int each = emu_element_bytes(operand->element);
  for (int line = 0; line < operand->lines; ++line) {
    for (int byte = 0; byte < EMU_PRODUCT_K; byte += each) {
      uintptr_t at = operand->by_k ? byte_by_k(&d, line, byte) : byte_across(&d, line, byte / each);
      at = emu_swizzled(at & WINDOW_MASK, d.swizzle);
      memcpy(&bytes[line][byte], window + at, (size_t)each);
    }
  }
}

// ---- Fragments: of 8 x 8 pieces, a warp has 16 rows ----

void emu_product_a_place(int thread, int index, int *row, int *byte) {
  *row = thread / 32 * 16 + thread % 32 / 4 + index % 2 * 8;
  *byte = thread % 4 * 4 + index / 2 * 16;
}

void emu_product_sum_place(int thread, int index, int *row, int *column) {
  *row = thread / 32 * 16 + thread % 32 / 4 + index / 2 % 2 * 8;
  *column = index / 4 * 8 + thread % 4 * 2 + index % 2;
}

// ---- Products ----

// Columns come in eights, which compilers make vectors of.
static void add_row(int columns, float a, const float *b, float *sums) {
  enum { EACH = 8 };
  for (int n = 0; n < columns; n += EACH)
    for (int i = 0; i < EACH; ++i) sums[n + i] += a * b[n + i];
}

void emu_product(emu_element_t element, int columns, uint8_t (*a)[EMU_PRODUCT_K], uint8_t (*b)[EMU_PRODUCT_K],
                 float (*sums)[EMU_PRODUCT_COLUMNS]) {
  float values[EMU_PRODUCT_K][EMU_PRODUCT_COLUMNS];
  int each = emu_element_bytes(element), depth = EMU_PRODUCT_K / each;
  for (int n = 0; n < columns; ++n)
    for (int k = 0; k < depth; ++k) values[k][n] = emu_element_value(element, &b[n][k * each]);
  for (int m = 0; m < EMU_PRODUCT_ROWS; ++m)
    for (int k = 0; k < depth; ++k)
      add_row(columns, emu_element_value(element, &a[m][k * each]), values[k], sums[m]);
}
