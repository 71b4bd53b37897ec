/* ONNX element types (TensorProto.DataType). */
#ifndef O3_IMPORT_ONNX_ONNX_DTYPE_H
#define O3_IMPORT_ONNX_ONNX_DTYPE_H

#include <stddef.h>
#include <stdint.h>

typedef struct o3_onnx_dtype {
  int32_t number;
  const char *name; /* "float32", "float8e4m3fn" */
  size_t bytes;     /* of one element; 0 where o3c does not read the type */
  const char *mlir; /* MLIR type text; NULL where o3c does not read the type */
} o3_onnx_dtype_t;

/* The numbers of the types that o3c reads: O3_ONNX_F32, ... */
enum {
  O3_ONNX_UNDEFINED = 0,
#define O3_DTYPE(id, name, onnx, bits, mlir) O3_ONNX_##id = onnx,
#include "base/dtype.def"
#undef O3_DTYPE
};

/* NULL for a number that ONNX does not define. Static. */
const o3_onnx_dtype_t *o3_onnx_dtype_get(int32_t number);

#endif
