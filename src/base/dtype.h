/* Element types: one table (dtype.def), and what can be asked about a row of it. */
#ifndef O3_BASE_DTYPE_H
#define O3_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum o3_dtype_id {
#define O3_DTYPE(id, name, onnx, bits, mlir) O3_DTYPE_##id,
#include "base/dtype.def"
#undef O3_DTYPE
  O3_DTYPE_COUNT
} o3_dtype_id_t;

typedef struct o3_dtype_info {
  const char *name; /* "float32" */
  int32_t onnx;     /* TensorProto.DataType, and o3_dtype_t of include/o3/model.h */
  int32_t bits;     /* in memory; a bool takes 8 */
  const char *mlir; /* element type text at tensor level: "f32", "ui8" */
} o3_dtype_info_t;

/* The row of |dtype|, which must be an enumerator above. Static. */
const o3_dtype_info_t *o3_dtype_info(o3_dtype_id_t dtype);

/* Lookups; false when no row has it, *|dtype| is then untouched. */
bool o3_dtype_from_onnx(int32_t onnx, o3_dtype_id_t *dtype);
bool o3_dtype_from_mlir(const char *text, o3_dtype_id_t *dtype);

#endif
