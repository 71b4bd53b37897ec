#include "analysis/winograd.h"

// clang-format off
static const double G2[] = {1, 0, 0,  0.5, 0.5, 0.5,  0.5, -0.5, 0.5,  0, 0, 1};
static const double B2[] = {1, 0, -1, 0,  0, 1, 1, 0,  0, -1, 1, 0,  0, 1, 0, -1};
static const double A2[] = {1, 1, 1, 0,  0, 1, -1, -1};

static const double G4[] = { 1.0 / 4,         0,        0,
                            -1.0 / 6,  -1.0 / 6, -1.0 / 6,
                            -1.0 / 6,   1.0 / 6, -1.0 / 6,
                            1.0 / 24,  1.0 / 12,  1.0 / 6,
                            1.0 / 24, -1.0 / 12,  1.0 / 6,
                                   0,         0,        1};
static const double B4[] = {4,  0, -5,  0, 1, 0,
                            0, -4, -4,  1, 1, 0,
                            0,  4, -4, -1, 1, 0,
                            0, -2, -1,  2, 1, 0,
                            0,  2, -1, -2, 1, 0,
                            0,  4,  0, -5, 0, 1};
static const double A4[] = {1, 1,  1, 1,  1, 0,
                            0, 1, -1, 2, -2, 0,
                            0, 1,  1, 4,  4, 0,
                            0, 1, -1, 8, -8, 1};
// clang-format on

static const o3_winograd_t FORMS[] = {{2, 4, G2, B2, A2}, {4, 6, G4, B4, A4}};

const o3_winograd_t *o3_winograd_find(int64_t tile) {
  for (size_t i = 0; i < sizeof(FORMS) / sizeof(FORMS[0]); ++i) {
    if (FORMS[i].tile == tile) return &FORMS[i];
  }
  return NULL;
}
