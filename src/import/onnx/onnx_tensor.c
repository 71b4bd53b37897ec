/* A tensor's data comes in one of three ways: raw bytes in the file, an external file, or a typed protobuf
 * field. The first two are used where they lie. Typed fields whose element has the tensor's own width lie in
 * the arena already, as protobuf-c decoded them; the others are narrowed. ONNX files are little-endian. */
#include "import/onnx/onnx_tensor.h"

#include <string.h>

#include "import/onnx/onnx_dtype.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ONNX data is used where it lies, little-endian");

enum { DATA_LOCATION_DEFAULT = 0, DATA_LOCATION_EXTERNAL = 1 };

/* A typed field of a tensor: |stride| bytes an element. */
typedef struct typed_field {
  const char *name;
  const void *data;
  size_t count, stride;
} typed_field_t;

/* ONNX's rule of which element type is kept in which field; the types not listed are kept in int32_data. */
static typed_field_t typed_field(const Onnx__TensorProto *tensor) {
  switch (tensor->data_type) {
    case O3_ONNX_F32:
      return (typed_field_t){"float_data", tensor->float_data, tensor->n_float_data, sizeof(float)};
    case O3_ONNX_I64:
      return (typed_field_t){"int64_data", tensor->int64_data, tensor->n_int64_data, sizeof(int64_t)};
    case O3_ONNX_F64:
      return (typed_field_t){"double_data", tensor->double_data, tensor->n_double_data, sizeof(double)};
    case O3_ONNX_U32:
    case O3_ONNX_U64:
      return (typed_field_t){"uint64_data", tensor->uint64_data, tensor->n_uint64_data, sizeof(uint64_t)};
    default:
      return (typed_field_t){"int32_data", tensor->int32_data, tensor->n_int32_data, sizeof(int32_t)};
  }
}

/* Keeps the low bytes. What is cut off must be the sign or zero: writers store unsigned values and the bits
 * of float16 either way. */
static o3_status_t narrow(o3_arena_t *arena, const typed_field_t *field, size_t bytes, const void **data) {
  uint8_t *out = o3_arena_alloc(arena, field->count, bytes);
  O3_TRY_ALLOC(out);
  for (size_t i = 0; i < field->count; ++i) {
    int64_t value =
        field->stride == 4 ? ((const int32_t *)field->data)[i] : ((const int64_t *)field->data)[i];
    int64_t cut = value >> (8 * bytes - 1);
    if (cut != 0 && cut != 1 && cut != -1)
      return o3_status_create(O3_STATUS_INVALID_MODEL,
                              "element %zu of its %s is %lld, which does not fit %zu bits", i, field->name,
                              (long long)value, 8 * bytes);
    memcpy(out + i * bytes, &value, bytes);
  }
  *data = out;
  return NULL;
}

static o3_status_t typed_data(o3_arena_t *arena, const Onnx__TensorProto *tensor,
                              const o3_onnx_dtype_t *dtype, size_t count, const void **data) {
  typed_field_t field = typed_field(tensor);
  if (field.count != count)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it has %zu elements in %s, its dims need %zu",
                            field.count, field.name, count);
  *data = field.data ? field.data : "";
  return field.stride == dtype->bytes || count == 0 ? NULL : narrow(arena, &field, dtype->bytes, data);
}

/* ONNX writes bools as 0 and 1. Other bytes would be true on one road through the compiler, false on another.
 */
static o3_status_t check_bools(const uint8_t *data, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (data[i] > 1)
      return o3_status_create(O3_STATUS_INVALID_MODEL,
                              "element %zu of a bool tensor is the byte %u, 0 or 1 is expected", i, data[i]);
  return NULL;
}

static o3_status_t find_data(o3_onnx_storage_t *storage, const Onnx__TensorProto *tensor,
                             const o3_onnx_dtype_t *dtype, size_t count, const void **data) {
  size_t bytes = count * dtype->bytes;
  if (tensor->data_location == DATA_LOCATION_EXTERNAL)
    return o3_onnx_external_data(storage, tensor, bytes, data);
  if (tensor->data_location != DATA_LOCATION_DEFAULT)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it has data_location %d, which ONNX does not define",
                            tensor->data_location);
  if (!tensor->has_mapped_length) return typed_data(storage->arena, tensor, dtype, count, data);
  if (tensor->mapped_length != bytes)
    return o3_status_create(O3_STATUS_INVALID_MODEL,
                            "it has %llu bytes of raw_data, its type and dims need %zu",
                            (unsigned long long)tensor->mapped_length, bytes);
  *data = storage->data + tensor->mapped_offset;
  return NULL;
}

static o3_status_t check_dtype(const Onnx__TensorProto *tensor, const o3_onnx_dtype_t **dtype) {
  *dtype = o3_onnx_dtype_get(tensor->data_type);
  if (!*dtype)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "it has element type %d, which ONNX does not define",
                            tensor->data_type);
  if (!(*dtype)->mlir)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "it has element type %s, which o3c does not read",
                            (*dtype)->name);
  return NULL;
}

/* Zero-sized dims do not hide an overflow of the others. */
o3_status_t o3_onnx_dims_check(size_t rank, const int64_t *dims, size_t element_bytes, size_t *count) {
  if (rank > O3_IR_MAX_RANK)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "it has rank %zu, at most %d is supported", rank,
                            O3_IR_MAX_RANK);
  int64_t nonzero = 1, bytes;
  bool empty = false;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return o3_status_create(O3_STATUS_INVALID_MODEL, "its dimension %zu is %lld, which is negative", i,
                              (long long)dims[i]);
    empty |= dims[i] == 0;
    if (dims[i] && __builtin_mul_overflow(nonzero, dims[i], &nonzero))
      return o3_status_create(O3_STATUS_INVALID_MODEL, "the product of its dims overflows 64 bits");
  }
  if (__builtin_mul_overflow(nonzero, (int64_t)element_bytes, &bytes))
    return o3_status_create(O3_STATUS_INVALID_MODEL, "its size in bytes overflows 64 bits");
  *count = empty ? 0 : (size_t)nonzero;
  return NULL;
}

o3_status_t o3_onnx_tensor_import(o3_onnx_storage_t *storage, const Onnx__TensorProto *tensor,
                                  const char *name, MlirAttribute *attr) {
  const o3_onnx_dtype_t *dtype;
  size_t count;
  const void *data;
  if (tensor->segment) return o3_status_create(O3_STATUS_UNSUPPORTED, "it is a segment of a tensor");
  O3_TRY(check_dtype(tensor, &dtype));
  O3_TRY(o3_onnx_dims_check(tensor->n_dims, tensor->dims, dtype->bytes, &count));
  O3_TRY(find_data(storage, tensor, dtype, count, &data));
  MlirType element = o3_type_parse(storage->context, dtype->mlir);
  if (o3_type_is_bool(element)) O3_TRY(check_bools(data, count));
  MlirType type = o3_tensor_type((int)tensor->n_dims, tensor->dims, element);
  return o3_weights_add(storage->weights, name, type, data, count * dtype->bytes, attr);
}
