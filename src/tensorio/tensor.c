/* Element types, memory and lists of tensors. */
#include "tensorio/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/float8.h"
#include "tensorio/half.h"

#define O3_FLOAT8_LOAD(id, x)  (double)o3_float8_to_float(o3_float8(O3_DTYPE_##id), x)
#define O3_FLOAT8_STORE(id, x) o3_float8_from_float(o3_float8(O3_DTYPE_##id), (float)(x))

#define TENSOR_ALIGNMENT 64u /* a cache line, and the widest vector */

/* memcpy frees the accesses from alignment and aliasing rules; it compiles to a plain move. */
#define O3_ELEMENT(id, ctype, kind, letter, value, storage)                                                 \
  static double load_##id(const void *data, int64_t index) {                                                \
    ctype x;                                                                                                \
    memcpy(&x, (const char *)data + index * (int64_t)sizeof x, sizeof x);                                   \
    return value;                                                                                           \
  }                                                                                                         \
  static void store_##id(void *data, int64_t index, double x) {                                             \
    const ctype stored = storage;                                                                           \
    memcpy((char *)data + index * (int64_t)sizeof stored, &stored, sizeof stored);                          \
  }                                                                                                         \
  static uint64_t bits_##id(const void *data, int64_t index) {                                              \
    uint64_t bits = 0;                                                                                      \
    memcpy(&bits, (const char *)data + index * (int64_t)sizeof(ctype), sizeof(ctype));                      \
    const unsigned unused = 64u - 8u * (unsigned)sizeof(ctype);                                             \
    return O3_ELEMENT_##kind == O3_ELEMENT_SIGNED ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits; \
  }
#include "tensorio/elements.def"
#undef O3_ELEMENT

static const char *const element_names[] = {
#define O3_DTYPE(id, name, onnx, bits, mlir) [onnx] = name,
#include "base/dtype.def"
#undef O3_DTYPE
};

static const o3_element_t elements[] = {
#define O3_ELEMENT(id, ctype, kind_, letter, value, storage) \
  [O3_##id] = {.dtype = O3_##id,                             \
               .size = sizeof(ctype),                        \
               .kind = O3_ELEMENT_##kind_,                   \
               .npy_letter = letter,                         \
               .load = load_##id,                            \
               .bits = bits_##id,                            \
               .store = store_##id},
#include "tensorio/elements.def"
#undef O3_ELEMENT
};

const o3_element_t *o3_tensorio_element_get(int32_t dtype) {
  if (dtype < 0 || (size_t)dtype >= sizeof elements / sizeof *elements) return NULL;
  return elements[dtype].load ? &elements[dtype] : NULL;
}

const char *o3_tensorio_element_name(int32_t dtype) {
  return o3_tensorio_element_get(dtype) ? element_names[dtype] : "unknown type";
}

o3_status_t o3_tensorio_measure(const o3_tensor_t *tensor, int64_t *count, size_t *bytes) {
  const o3_element_t *element = o3_tensorio_element_get((int32_t)tensor->dtype);
  if (!element) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "element type %d is unknown", (int)tensor->dtype);
  }
  if (tensor->rank < 0 || tensor->rank > O3_MAX_RANK) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "rank is %d, at most %d is supported", tensor->rank,
                            O3_MAX_RANK);
  }
  /* A zero dimension makes the product zero but must not hide that the others overflow elsewhere:
   * strides are products of them. */
  int64_t product = 1, elements_total = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    const int64_t size = tensor->shape[i];
    if (size < 0) {
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "dimension %d is %" PRId64 ", at least 0 expected",
                              i, size);
    }
    if (__builtin_mul_overflow(product, size ? size : 1, &product)) product = -1;
    if (product < 0 || product > PTRDIFF_MAX / (int64_t)element->size) {
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "the shape has more than %td bytes", PTRDIFF_MAX);
    }
    elements_total *= size ? 1 : 0;
  }
  elements_total *= product;
  if (count) *count = elements_total;
  if (bytes) *bytes = (size_t)elements_total * element->size;
  return NULL;
}

o3_status_t o3_tensorio_tensor_init(o3_tensor_t *tensor) {
  size_t bytes;
  tensor->data = NULL;
  O3_TRY(o3_tensorio_measure(tensor, NULL, &bytes));
  const size_t padded = (bytes + TENSOR_ALIGNMENT) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
  if (!o3_fault_alloc_should_fail()) tensor->data = aligned_alloc(TENSOR_ALIGNMENT, padded);
  if (!tensor->data) {
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory for a tensor of %zu bytes", bytes);
  }
  memset(tensor->data, 0, padded);
  return NULL;
}

void o3_tensorio_tensor_deinit(o3_tensor_t *tensor) {
  free(tensor->data);
  tensor->data = NULL;
}

o3_status_t o3_tensorio_bools_check(const o3_tensor_t *tensor) {
  if (tensor->dtype != O3_BOOL) return NULL;
  int64_t count;
  O3_TRY(o3_tensorio_measure(tensor, &count, NULL));
  const uint8_t *bytes = tensor->data;
  for (int64_t i = 0; i < count; ++i) {
    if (bytes[i] > 1) {
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "boolean %" PRId64 " is %d, 0 or 1 expected", i,
                              bytes[i]);
    }
  }
  return NULL;
}

void o3_tensorio_relabel(o3_tensor_t *tensor, o3_dtype_t dtype) {
  o3_dtype_id_t id;
  if (tensor->dtype != O3_UINT8 || !o3_dtype_from_onnx((int32_t)dtype, &id) || !o3_float8(id)) return;
  tensor->dtype = dtype;
}

void o3_tensorio_shape_print(o3_strbuf_t *text, int32_t rank, const int64_t *shape) {
  o3_strbuf_puts(text, "[");
  for (int32_t i = 0; i < rank; ++i) o3_strbuf_printf(text, "%s%" PRId64, i ? "," : "", shape[i]);
  o3_strbuf_puts(text, "]");
}

void o3_tensorio_list_deinit(o3_tensor_list_t *list) {
  for (size_t i = 0; i < list->count; ++i) {
    free(list->items[i].name);
    o3_tensorio_tensor_deinit(&list->items[i].tensor);
  }
  free(list->items);
  *list = (o3_tensor_list_t){0};
}

/* A list of one, so that all formats read alike. */
static o3_status_t list_init_single(o3_tensor_list_t *list) {
  list->items = o3_fault_calloc(1, sizeof *list->items);
  if (!list->items) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  list->count = 1;
  return NULL;
}

static o3_status_t read_npy(const uint8_t *data, size_t size, o3_tensor_list_t *list) {
  O3_TRY(list_init_single(list));
  return o3_tensorio_npy_parse(data, size, &list->items[0].tensor);
}

static o3_status_t read_onnx(const uint8_t *data, size_t size, o3_tensor_list_t *list) {
  O3_TRY(list_init_single(list));
  return o3_tensorio_onnx_parse(data, size, &list->items[0]);
}

static const struct file_format {
  const char *ending;
  o3_status_t (*read)(const uint8_t *, size_t, o3_tensor_list_t *);
} file_formats[] = {{".npy", read_npy}, {".npz", o3_tensorio_npz_parse}, {".pb", read_onnx}};

static const struct file_format *file_format_find(const char *path) {
  const char *ending = strrchr(path, '.');
  for (size_t i = 0; ending && i < sizeof file_formats / sizeof *file_formats; ++i) {
    if (!strcmp(ending, file_formats[i].ending)) return &file_formats[i];
  }
  return NULL;
}

o3_status_t o3_tensorio_file_read(const char *path, o3_tensor_list_t *list) {
  *list = (o3_tensor_list_t){0};
  const struct file_format *format = file_format_find(path);
  if (!format) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "'%s' is no tensor file: its name must end in .npy, .npz or .pb", path);
  }
  o3_mapped_file_t file;
  O3_TRY(o3_file_map(path, &file));
  o3_status_t status = format->read(file.data, file.size, list);
  o3_file_unmap(&file);
  if (status) o3_tensorio_list_deinit(list);
  return o3_status_annotate(status, "'%s'", path);
}
