/* Sparse tensors keep the file's form: which format suits them is decided later. What reads them may rely on
 * the indices, so they are checked here. */
#include <string.h>

#include "import/onnx/onnx_tensor.h"

typedef struct indices {
  const int64_t *data;
  size_t count; /* of nonzeros */
  size_t width; /* of one index: 1, a row-major position, or the rank */
} indices_t;

static o3_status_t check_shapes(const Onnx__SparseTensorProto *tensor, MlirType values, MlirType indices,
                                size_t *width) {
  int rank = o3_type_rank(indices);
  bool linear = rank == 1;
  *width = linear ? 1 : tensor->n_dims;
  if (o3_type_rank(values) != 1)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "its values have rank %d, 1 is expected",
                            o3_type_rank(values));
  if (!mlirTypeIsAInteger(o3_type_element(indices)) || o3_type_bits(o3_type_element(indices)) != 64 ||
      o3_type_is_unsigned(o3_type_element(indices)))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "its indices are not of element type int64");
  if (!linear && (rank != 2 || o3_type_dim(indices, 1) != (int64_t)tensor->n_dims))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "its indices are of shape neither [n] nor [n, %zu]",
                            tensor->n_dims);
  if (o3_type_dim(indices, 0) != o3_type_dim(values, 0))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it has %lld values and %lld indices",
                            (long long)o3_type_dim(values, 0), (long long)o3_type_dim(indices, 0));
  return NULL;
}

/* The row-major position of nonzero |at|; -1 when it is outside of |dims|. */
static int64_t position(const Onnx__SparseTensorProto *tensor, const indices_t *indices, size_t at,
                        size_t size) {
  const int64_t *index = indices->data + at * indices->width;
  if (indices->width == 1 && tensor->n_dims != 1) return *index < 0 || (uint64_t)*index >= size ? -1 : *index;
  int64_t result = 0;
  for (size_t i = 0; i < tensor->n_dims; ++i) {
    if (index[i] < 0 || index[i] >= tensor->dims[i]) return -1;
    result = result * tensor->dims[i] + index[i];
  }
  return result;
}

static o3_status_t check_indices(const Onnx__SparseTensorProto *tensor, const indices_t *indices,
                                 size_t size) {
  int64_t last = -1;
  for (size_t i = 0; i < indices->count; ++i) {
    int64_t next = position(tensor, indices, i, size);
    if (next < 0)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "its index %zu lies outside of its dims", i);
    if (next <= last)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "its index %zu is not larger than the one before", i);
    last = next;
  }
  return NULL;
}

static o3_status_t check_sparse(o3_onnx_storage_t *storage, const Onnx__SparseTensorProto *tensor,
                                MlirAttribute values, MlirAttribute indices_attr) {
  size_t size, bytes;
  indices_t indices;
  O3_TRY(o3_onnx_dims_check(tensor->n_dims, tensor->dims, sizeof(double), &size));
  O3_TRY(
      check_shapes(tensor, mlirAttributeGetType(values), mlirAttributeGetType(indices_attr), &indices.width));
  const void *data = o3_weights_data(storage->weights, indices_attr, &bytes);
  O3_TRY_ALLOC(data);
  indices.count = (size_t)o3_type_dim(mlirAttributeGetType(indices_attr), 0);
  int64_t *aligned = O3_ARENA_ARRAY(storage->arena, int64_t, bytes / sizeof(int64_t));
  O3_TRY_ALLOC(aligned);
  memcpy(aligned, data, bytes);
  indices.data = aligned;
  return check_indices(tensor, &indices, size);
}

static MlirNamedAttribute named(MlirContext context, const char *name, MlirAttribute attr) {
  return mlirNamedAttributeGet(mlirIdentifierGet(context, O3_STR(name)), attr);
}

o3_status_t o3_onnx_sparse_tensor_import(o3_onnx_storage_t *storage, const Onnx__SparseTensorProto *tensor,
                                         const char *name, MlirAttribute *attr) {
  MlirAttribute values, indices;
  if (!tensor->values || !tensor->indices)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it is a sparse tensor without %s",
                            tensor->values ? "indices" : "values");
  O3_TRY_CONTEXT(o3_onnx_tensor_import(storage, tensor->values, name, &values), "its values");
  const char *indices_name = o3_arena_printf(storage->arena, "%s.indices", name);
  O3_TRY_ALLOC(indices_name);
  O3_TRY_CONTEXT(o3_onnx_tensor_import(storage, tensor->indices, indices_name, &indices), "its indices");
  O3_TRY(check_sparse(storage, tensor, values, indices));
  MlirContext context = storage->context;
  MlirAttribute dims = o3_attr_ints(context, (int)tensor->n_dims, tensor->dims);
  const MlirNamedAttribute entries[] = {named(context, "dims", dims), named(context, "indices", indices),
                                        named(context, "values", values)};
  *attr = mlirDictionaryAttrGet(context, sizeof(entries) / sizeof(entries[0]), entries);
  return NULL;
}
