#include "import/onnx/onnx_dtype.h"

static const o3_onnx_dtype_t types[] = {
#define O3_DTYPE(id, name, onnx, bits, mlir) {onnx, name, (bits) / 8, mlir},
#include "base/dtype.def"
#undef O3_DTYPE
#define O3_ONNX_UNREAD_TYPE(onnx, name) {onnx, name, 0, NULL},
#include "import/onnx/onnx_unread_types.def"
#undef O3_ONNX_UNREAD_TYPE
};

const o3_onnx_dtype_t *o3_onnx_dtype_get(int32_t number) {
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i)
    if (types[i].number == number) return &types[i];
  return NULL;
}
