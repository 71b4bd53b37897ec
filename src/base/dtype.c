/* A dozen rows: lookups walk the table. */
#include "base/dtype.h"

#include <string.h>

#include "base/check.h"

static const o3_dtype_info_t infos[] = {
#define O3_DTYPE(id, name, onnx, bits, mlir) {name, onnx, bits, mlir},
#include "base/dtype.def"
#undef O3_DTYPE
};

const o3_dtype_info_t *o3_dtype_info(o3_dtype_id_t dtype) {
  O3_ASSERT((unsigned)dtype < O3_DTYPE_COUNT, "element type of dtype.def");
  return &infos[dtype];
}

static bool found(int row, o3_dtype_id_t *dtype) {
  if (row == O3_DTYPE_COUNT) return false;
  *dtype = (o3_dtype_id_t)row;
  return true;
}

bool o3_dtype_from_onnx(int32_t onnx, o3_dtype_id_t *dtype) {
  int row = 0;
  while (row < O3_DTYPE_COUNT && infos[row].onnx != onnx) ++row;
  return found(row, dtype);
}

bool o3_dtype_from_mlir(const char *text, o3_dtype_id_t *dtype) {
  int row = 0;
  while (row < O3_DTYPE_COUNT && strcmp(infos[row].mlir, text)) ++row;
  return found(row, dtype);
}
