// Conversions that x86 code calls where the processor has none; gcc 12's library has not all of them. A
// 16-bit float, bfloat16 too, is returned as _Float16 is.
#include <string.h>

#include "emulator.h"

#define API __attribute__((visibility("default")))

static _Float16 as_half(uint16_t bits) {
  _Float16 value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

API _Float16 __truncsfbf2(float x);
API _Float16 __truncdfbf2(double x);
API _Float16 __truncdfhf2(double x);

// To nearest, halves to even.
API _Float16 __truncsfbf2(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return as_half((uint16_t)(bits >> 16 | 0x40));
  return as_half((uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

// To float32 with its last bit set where something is cut off, so that the second rounding is right.
static float to_odd(double x) {
  float y = (float)x;
  uint32_t bits;
  memcpy(&bits, &y, sizeof bits);
  if ((double)y == x || x != x) return y;
  bool away = (x < 0 ? -(double)y : (double)y) > (x < 0 ? -x : x);
  bits = (away ? bits - 1 : bits) | 1;
  memcpy(&y, &bits, sizeof y);
  return y;
}

API _Float16 __truncdfbf2(double x) { return __truncsfbf2(to_odd(x)); }
API _Float16 __truncdfhf2(double x) { return (_Float16)to_odd(x); }
