/* float16 (IEEE 754 binary16) and bfloat16, held as their bits in uint16_t.
 *
 * Conversions to float are exact. Conversions from float round to nearest, ties to even, with
 * subnormals, infinities and overflow to infinity as IEEE 754-2019 says; a NaN stays a NaN with its
 * sign and the top of its payload, made quiet.
 */
#ifndef O3_TENSORIO_HALF_H
#define O3_TENSORIO_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t o3_float_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float o3_float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float o3_half_to_float(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu,
                 mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return o3_float_from_bits(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) return o3_float_from_bits(sign | o3_float_to_bits((float)mantissa * 0x1p-24f));
  return o3_float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

static inline uint16_t o3_half_from_float(float value) {
  const uint32_t bits = o3_float_to_bits(value), sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more */
  if (magnitude <= 0x33000000u) return (uint16_t)sign;             /* 2^-25 and less */
  if (magnitude < 0x38800000u) {                                   /* below 2^-14: units of 2^-24 */
    const uint32_t shift = 126 - (magnitude >> 23), mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t units = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), tie = 1u << (shift - 1);
    return (uint16_t)(sign | (units + (rest > tie || (rest == tie && (units & 1)))));
  }
  magnitude += 0xfffu + (magnitude >> 13 & 1u);
  return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

static inline float o3_bfloat_to_float(uint16_t bfloat) { return o3_float_from_bits((uint32_t)bfloat << 16); }

static inline uint16_t o3_bfloat_from_float(float value) {
  const uint32_t bits = o3_float_to_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
