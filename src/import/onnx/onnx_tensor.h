/* Tensors of an ONNX file as MLIR elements attributes. */
#ifndef O3_IMPORT_ONNX_ONNX_TENSOR_H
#define O3_IMPORT_ONNX_ONNX_TENSOR_H

#include "base/map.h"
#include "import/import.h"
#include "onnx.pb-c.h"

/* Where the bytes of tensors come from, and where they go. */
typedef struct o3_onnx_storage {
  MlirContext context;
  o3_arena_t *arena;
  o3_weights_t *weights;
  const uint8_t *data;    /* the model file: base of mapped_offset */
  const char *folder;     /* of external data; NULL: none allowed */
  o3_str_map_t *external; /* resolved path -> o3_mapped_file_t * */
} o3_onnx_storage_t;

/* The elements attribute of |tensor|, whose weight is called |name|. Errors do not name the tensor. */
o3_status_t o3_onnx_tensor_import(o3_onnx_storage_t *storage, const Onnx__TensorProto *tensor,
                                  const char *name, MlirAttribute *attr) O3_MUST_USE;

/* The number of elements of a shape; fails when it, or its size in bytes, is none that int64_t holds. */
o3_status_t o3_onnx_dims_check(size_t rank, const int64_t *dims, size_t element_bytes, size_t *count)
    O3_MUST_USE;

/* A dictionary {values, indices, dims}: the two tensors as the file has them, and the dense shape. Values are
 * of shape [n], indices are i64 of shape [n] (row-major positions) or [n, rank], ascending and within dims.
 */
o3_status_t o3_onnx_sparse_tensor_import(o3_onnx_storage_t *storage, const Onnx__SparseTensorProto *tensor,
                                         const char *name, MlirAttribute *attr) O3_MUST_USE;

/* The bytes of a tensor with data_location EXTERNAL, |expected| in number, in a file that |storage->weights|
 * keeps. */
o3_status_t o3_onnx_external_data(o3_onnx_storage_t *storage, const Onnx__TensorProto *tensor,
                                  size_t expected, const void **data) O3_MUST_USE;

#endif
