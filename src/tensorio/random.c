/* Seeded random tensors: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
 * 2014) and Box-Muller. Ours rather than rand(): the same seed must give the same tensor everywhere. */
#include <math.h>

#include "tensorio/tensor.h"

static uint64_t next_bits(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* In (0, 1]: its logarithm is finite. */
static double next_unit(uint64_t *state) { return ((double)(next_bits(state) >> 11) + 1) * 0x1p-53; }

static double next_normal(uint64_t *state) {
  const double radius = sqrt(-2 * log(next_unit(state)));
  return radius * cos(2 * 3.14159265358979323846 * next_unit(state));
}

/* The integers that an element of |size| bytes holds, cut to what a double holds exactly. */
static void clamp_range(const o3_element_t *element, int64_t *low, int64_t *high) {
  const int bits = element->size == 8 ? 53 : (int)(8 * element->size);
  int64_t least = 0, most = (INT64_C(1) << bits) - 1;
  if (element->kind == O3_ELEMENT_BOOL) most = 1;
  if (element->kind == O3_ELEMENT_SIGNED) {
    most = (INT64_C(1) << (bits - 1)) - 1;
    least = -most - 1;
  }
  *low = *low < least ? least : *low > most ? most : *low;
  *high = *high < *low ? *low : *high > most ? most : *high;
}

void o3_tensorio_random_fill(const o3_tensor_t *tensor, uint64_t seed, int64_t low, int64_t high) {
  const o3_element_t *element = o3_tensorio_element_get((int32_t)tensor->dtype);
  uint64_t state = seed;
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) count *= tensor->shape[i];
  if (element->kind == O3_ELEMENT_BOOL) {
    low = 0;
    high = 1;
  }
  clamp_range(element, &low, &high);
  const uint64_t span = (uint64_t)(high - low) + 1;
  for (int64_t i = 0; i < count; ++i) {
    const double value = element->kind == O3_ELEMENT_FLOAT
                             ? next_normal(&state)
                             : (double)(low + (int64_t)(next_bits(&state) % span));
    element->store(tensor->data, i, value);
  }
}
