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

static MlirWalkResult add_constant(MlirOperation op, void *context) {
  int64_t *bytes = context;
  if (!o3_op_is(op, "o3.constant")) return MlirWalkResultAdvance;
  MlirType type = mlirValueGetType(mlirOperationGetResult(op, 0));
  int64_t count = mlirTypeIsARankedTensor(type) ? o3_type_count(type) : 0;
  if (count > 0) *bytes += count * (o3_type_bits(o3_type_element(type)) / 8);
  return MlirWalkResultAdvance;
}

int64_t o3_winograd_model_bytes(MlirOperation op) {
  int64_t bytes = 0;
  for (MlirOperation parent = op; !mlirOperationIsNull(parent); parent = mlirOperationGetParentOperation(op))
    op = parent;
  mlirOperationWalk(op, add_constant, &bytes, MlirWalkPreOrder);
  return bytes;
}
