/* ONNX TensorProto files: the elements lie in raw_data (little-endian), or one a number in the typed
 * field of their type. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "tensor.pb-c.h"
#include "tensorio/tensor.h"

typedef O3__Tensorio__TensorProto proto_t;

/* The typed fields, and the element types that each holds; narrow floats as bits in int32_data. */
typedef enum field { FIELD_FLOAT, FIELD_INT32, FIELD_INT64, FIELD_DOUBLE, FIELD_UINT64, FIELD_COUNT } field_t;

static const char *const field_names[FIELD_COUNT] = {"float_data", "int32_data", "int64_data", "double_data",
                                                     "uint64_data"};
static const field_t element_fields[] = {
    [O3_FLOAT32] = FIELD_FLOAT,    [O3_UINT8] = FIELD_INT32,          [O3_INT8] = FIELD_INT32,
    [O3_UINT16] = FIELD_INT32,     [O3_INT16] = FIELD_INT32,          [O3_INT32] = FIELD_INT32,
    [O3_INT64] = FIELD_INT64,      [O3_BOOL] = FIELD_INT32,           [O3_FLOAT16] = FIELD_INT32,
    [O3_FLOAT64] = FIELD_DOUBLE,   [O3_UINT32] = FIELD_UINT64,        [O3_UINT64] = FIELD_UINT64,
    [O3_BFLOAT16] = FIELD_INT32,   [O3_FLOAT8E4M3FN] = FIELD_INT32,   [O3_FLOAT8E4M3FNUZ] = FIELD_INT32,
    [O3_FLOAT8E5M2] = FIELD_INT32, [O3_FLOAT8E5M2FNUZ] = FIELD_INT32,
};

static void field_sizes(const proto_t *proto, size_t sizes[FIELD_COUNT]) {
  sizes[FIELD_FLOAT] = proto->n_float_data;
  sizes[FIELD_INT32] = proto->n_int32_data;
  sizes[FIELD_INT64] = proto->n_int64_data;
  sizes[FIELD_DOUBLE] = proto->n_double_data;
  sizes[FIELD_UINT64] = proto->n_uint64_data;
}

static o3_status_t read_shape(const proto_t *proto, o3_tensor_t *tensor) {
  if (!proto->has_data_type) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "not an ONNX TensorProto: it has no data_type");
  }
  if (!o3_tensorio_element_get(proto->data_type)) {
    return o3_status_create(O3_STATUS_UNSUPPORTED,
                            "the tensor's ONNX data_type is %d, which O3 does not have", proto->data_type);
  }
  if (proto->n_dims > O3_MAX_RANK) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "the tensor has %zu dimensions, at most %d are supported", proto->n_dims,
                            O3_MAX_RANK);
  }
  tensor->dtype = (o3_dtype_t)proto->data_type;
  tensor->rank = (int32_t)proto->n_dims;
  if (proto->n_dims) memcpy(tensor->shape, proto->dims, proto->n_dims * sizeof *proto->dims);
  return NULL;
}

static o3_status_t check_storage(const proto_t *proto) {
  if (proto->data_location || proto->n_external_data) {
    return o3_status_create(O3_STATUS_UNSUPPORTED, "the tensor's data lies in another file (external_data)");
  }
  if (proto->segment)
    return o3_status_create(O3_STATUS_UNSUPPORTED, "the tensor is a segment of a larger one");
  return NULL;
}

/* Which field must hold the elements: exactly one, of exactly |count| elements (|bytes| bytes when raw). */
static o3_status_t check_sizes(const proto_t *proto, field_t field, int64_t count, size_t bytes) {
  size_t sizes[FIELD_COUNT];
  field_sizes(proto, sizes);
  for (field_t i = 0; i < FIELD_COUNT; ++i) {
    if (sizes[i] && (i != field || proto->has_raw_data)) {
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "%s is set, the tensor's type %s wants its data in %s", field_names[i],
                              o3_tensorio_element_name(proto->data_type),
                              proto->has_raw_data ? "raw_data alone" : field_names[field]);
    }
  }
  if (proto->has_raw_data && proto->raw_data.len != bytes) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "raw_data has %zu bytes, the tensor's shape and type need %zu",
                            proto->raw_data.len, bytes);
  }
  if (!proto->has_raw_data && sizes[field] != (size_t)count) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "%s has %zu elements, the tensor's shape needs %" PRId64, field_names[field],
                            sizes[field], count);
  }
  return NULL;
}

/* Stores |value|, known as a signed number, in the low bytes of an element, if it fits there. */
static o3_status_t store_narrow(const o3_element_t *element, void *data, int64_t index, uint64_t value,
                                const char *field) {
  uint8_t *at = (uint8_t *)data + (size_t)index * element->size;
  memcpy(at, &value, element->size);
  if (element->bits(data, index) == value) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                          "%s[%" PRId64 "] is %" PRId64 ", which %s does not hold", field, index,
                          (int64_t)value, o3_tensorio_element_name((int32_t)element->dtype));
}

static o3_status_t copy_typed(const proto_t *proto, field_t field, int64_t count, size_t bytes,
                              o3_tensor_t *tensor) {
  const void *const whole[FIELD_COUNT] = {[FIELD_FLOAT] = proto->float_data,
                                          [FIELD_INT64] = proto->int64_data,
                                          [FIELD_DOUBLE] = proto->double_data};
  if (whole[field]) {
    memcpy(tensor->data, whole[field], bytes);
    return NULL;
  }
  const o3_element_t *element = o3_tensorio_element_get((int32_t)tensor->dtype);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t value =
        field == FIELD_UINT64 ? proto->uint64_data[i] : (uint64_t)(int64_t)proto->int32_data[i];
    O3_TRY(store_narrow(element, tensor->data, i, value, field_names[field]));
  }
  return NULL;
}

static o3_status_t copy_elements(const proto_t *proto, o3_tensor_t *tensor) {
  int64_t count;
  size_t bytes;
  const field_t field = element_fields[tensor->dtype];
  O3_TRY(o3_tensorio_measure(tensor, &count, &bytes));
  O3_TRY(check_sizes(proto, field, count, bytes));
  O3_TRY(o3_tensorio_tensor_init(tensor));
  if (proto->has_raw_data) {
    if (bytes) memcpy(tensor->data, proto->raw_data.data, bytes);
  } else if (count) {
    O3_TRY(copy_typed(proto, field, count, bytes, tensor));
  }
  return o3_tensorio_bools_check(tensor);
}

static o3_status_t copy_name(const proto_t *proto, o3_named_tensor_t *tensor) {
  if (!proto->name || !*proto->name) return NULL;
  const size_t size = strlen(proto->name) + 1;
  tensor->name = o3_fault_malloc(size);
  if (!tensor->name) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  memcpy(tensor->name, proto->name, size);
  return NULL;
}

static o3_status_t convert(const proto_t *proto, o3_named_tensor_t *tensor) {
  O3_TRY(read_shape(proto, &tensor->tensor));
  O3_TRY(check_storage(proto));
  O3_TRY(copy_elements(proto, &tensor->tensor));
  return copy_name(proto, tensor);
}

o3_status_t o3_tensorio_onnx_parse(const uint8_t *data, size_t size, o3_named_tensor_t *tensor) {
  *tensor = (o3_named_tensor_t){0};
  proto_t *proto = o3__tensorio__tensor_proto__unpack(NULL, size, data);
  if (!proto)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "not an ONNX TensorProto: malformed protobuf");
  o3_status_t status = convert(proto, tensor);
  o3__tensorio__tensor_proto__free_unpacked(proto, NULL);
  if (status) {
    free(tensor->name);
    tensor->name = NULL;
    o3_tensorio_tensor_deinit(&tensor->tensor);
  }
  return status;
}
