// Numbers that tensor cores multiply, as floats.
//
//     emu_element_t element = emu_element_named("bf16", 4);
//     float first = emu_element_value(element, bytes);
#ifndef O3_TEST_EMU_ELEMENT_H
#define O3_TEST_EMU_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum emu_element {
#define EMU_ELEMENT(id, ptx, bytes) EMU_##id,
#include "emu_elements.def"
#undef EMU_ELEMENT
  EMU_ELEMENTS
} emu_element_t;

// Of the name in PTX, "f16"; EMU_ELEMENTS for what is none.
emu_element_t emu_element_named(const char *name, int length);
int emu_element_bytes(emu_element_t element);
float emu_element_value(emu_element_t element, const uint8_t *at);

// A float32 as TF32: 10 bits behind the point, halves away from zero; infinities and NaNs stay as they are.
uint32_t emu_tf32_rounded(uint32_t bits);

#endif
