#include "emu_element.h"

#include <math.h>
#include <string.h>

enum { TF32_LOST = 0x1fff };  // the bits that the format does not have, and the card ignores

static const struct {
  const char *name;
  int bytes;
} kElements[] = {
#define EMU_ELEMENT(id, ptx, bytes) {ptx, bytes},
#include "emu_elements.def"
#undef EMU_ELEMENT
};

emu_element_t emu_element_named(const char *name, int length) {
  for (int i = 0; i < EMU_ELEMENTS; ++i) {
    if ((int)strlen(kElements[i].name) == length && !strncmp(kElements[i].name, name, (size_t)length))
      return (emu_element_t)i;
  }
  return EMU_ELEMENTS;
}

int emu_element_bytes(emu_element_t element) { return kElements[element].bytes; }

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// A number of |exponent| and |mantissa| bits, a sign before them: read as a float of a smaller exponent,
// which a factor puts right. Of formats without infinities (e4m3) only the largest code is NaN.
static float small_float(uint32_t bits, int exponent, int mantissa, bool infinities) {
  const uint32_t largest = (1u << (exponent + mantissa)) - 1, code = bits & largest;
  const uint32_t specials = infinities ? largest & ~((1u << mantissa) - 1) : largest;
  float value =
      of_bits(code << (23 - mantissa)) * of_bits((uint32_t)(254 - ((1 << (exponent - 1)) - 1)) << 23);
  if (code >= specials) value = code == specials && infinities ? INFINITY : NAN;
  return bits > largest ? -value : value;
}

float emu_element_value(emu_element_t element, const uint8_t *at) {
  uint32_t bits = 0;
  memcpy(&bits, at, (size_t)kElements[element].bytes);
  switch (element) {
    case EMU_F16:
      return small_float(bits, 5, 10, true);
    case EMU_BF16:
      return of_bits(bits << 16);
    case EMU_TF32:
      return of_bits(bits & ~(uint32_t)TF32_LOST);
    case EMU_E4M3:
      return small_float(bits, 4, 3, false);
    case EMU_E5M2:
      return small_float(bits, 5, 2, true);
    default:
      return NAN;
  }
}

uint32_t emu_tf32_rounded(uint32_t bits) {
  bool finite = (bits >> 23 & 0xff) != 0xff;
  return finite ? (bits + (TF32_LOST + 1) / 2) & ~(uint32_t)TF32_LOST : bits;
}
