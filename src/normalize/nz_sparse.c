/* Sparse constants of the model file become dense ones: which format suits them is decided by later stages,
 * which look at the zeros. */
#include <string.h>

#include "normalize/nz.h"

typedef struct sparse {
  MlirType values_type, type;
  const uint8_t *values;
  const uint8_t *indices; /* int64_t, maybe unaligned */
  int rank, width;        /* numbers in an index: 1 (row-major position) or the rank */
  int64_t dims[O3_IR_MAX_RANK];
} sparse_t;

static o3_status_t read_sparse(o3_nz_t *nz, MlirAttribute attr, sparse_t *sparse) {
  MlirAttribute values = mlirDictionaryAttrGetElementByName(attr, O3_STR("values"));
  MlirAttribute indices = mlirDictionaryAttrGetElementByName(attr, O3_STR("indices"));
  MlirAttribute dims = mlirDictionaryAttrGetElementByName(attr, O3_STR("dims"));
  sparse->rank = (int)mlirDenseArrayGetNumElements(dims);
  if (sparse->rank > O3_IR_MAX_RANK)
    return o3_nz_unsupported(nz, "a sparse tensor of rank %d, at most %d is", sparse->rank, O3_IR_MAX_RANK);
  for (int i = 0; i < sparse->rank; ++i) sparse->dims[i] = mlirDenseI64ArrayGetElement(dims, i);
  sparse->width = o3_type_rank(mlirAttributeGetType(indices)) == 2 ? sparse->rank : 1;
  sparse->values_type = mlirAttributeGetType(values);
  sparse->type = o3_tensor_type(sparse->rank, sparse->dims, o3_type_element(sparse->values_type));
  sparse->values = o3_weights_data(nz->weights, values, NULL);
  sparse->indices = o3_weights_data(nz->weights, indices, NULL);
  O3_TRY_ALLOC(sparse->values);
  O3_TRY_ALLOC(sparse->indices);
  return NULL;
}

static int64_t position(const sparse_t *sparse, int64_t at) {
  int64_t result = 0;
  for (int i = 0; i < sparse->width; ++i) {
    int64_t index;
    memcpy(&index, sparse->indices + (size_t)(at * sparse->width + i) * sizeof(index), sizeof(index));
    result = sparse->width == 1 ? index : result * sparse->dims[i] + index;
  }
  return result;
}

/* The importer has checked that all indices lie inside. */
static o3_status_t expand(o3_nz_t *nz, const sparse_t *sparse, MlirAttribute *attr) {
  size_t width = (size_t)o3_type_bits(o3_type_element(sparse->type)) / 8;
  int64_t count = o3_type_dim(sparse->values_type, 0), total = o3_type_count(sparse->type);
  size_t bytes;
  if (total < 0 || __builtin_mul_overflow((size_t)total, width, &bytes))
    return o3_nz_unsupported(nz, "a sparse tensor that is too large to expand");
  uint8_t *data = o3_weights_alloc(nz->weights, bytes);
  O3_TRY_ALLOC(data);
  for (int64_t i = 0; i < count; ++i)
    memcpy(data + (size_t)position(sparse, i) * width, sparse->values + (size_t)i * width, width);
  return o3_weights_add(nz->weights, "sparse", sparse->type, data, bytes, attr);
}

MlirValue o3_nz_sparse_constant(o3_nz_t *nz, MlirAttribute attr) {
  sparse_t sparse = {0};
  MlirAttribute dense;
  if (o3_nz_failed(nz)) return (MlirValue){0};
  o3_status_t status = read_sparse(nz, attr, &sparse);
  if (!status) status = expand(nz, &sparse, &dense);
  if (!status) return o3_nz_constant(nz, dense);
  o3_nz_fail(nz, status);
  return (MlirValue){0};
}
