/* NumPy's .npy format: a magic, a version, the length of a header, the header - a Python dictionary
 * such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } - and the elements.
 * Specification: numpy.lib.format, NEP 1. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/file.h"
#include "tensorio/tensor.h"

#define NPY_MAGIC      "\x93NUMPY"
#define NPY_MAGIC_SIZE 6u
#define NPY_DESCR_MAX  15u
#define NPY_ALIGNMENT  64u /* of the elements in files that we write, as NumPy does */

typedef struct npy_header {
  char descr[NPY_DESCR_MAX + 1];
  bool fortran_order, swapped;
  unsigned seen; /* bit i: key i of npy_keys */
  size_t data_offset;
} npy_header_t;

/* The text not yet read of the header. */
typedef struct npy_scanner {
  const char *at, *end;
} npy_scanner_t;

static o3_status_t malformed(const char *what) {
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "malformed .npy header: %s", what);
}

static void skip_spaces(npy_scanner_t *scanner) {
  while (scanner->at < scanner->end && isspace((unsigned char)*scanner->at)) ++scanner->at;
}

/* Whether |text| comes next; steps over it if so. */
static bool accept(npy_scanner_t *scanner, const char *text) {
  skip_spaces(scanner);
  const size_t length = strlen(text);
  if ((size_t)(scanner->end - scanner->at) < length || memcmp(scanner->at, text, length) != 0) return false;
  scanner->at += length;
  return true;
}

/* A string in single or double quotes, without escapes, copied to |text| of |capacity| bytes. */
static o3_status_t scan_string(npy_scanner_t *scanner, char *text, size_t capacity) {
  skip_spaces(scanner);
  if (scanner->at == scanner->end || (*scanner->at != '\'' && *scanner->at != '"')) {
    return malformed("a string expected (structured types are not supported)");
  }
  const char quote = *scanner->at++;
  const char *close = memchr(scanner->at, quote, (size_t)(scanner->end - scanner->at));
  if (!close) return malformed("a string does not end");
  const size_t length = (size_t)(close - scanner->at);
  if (length >= capacity) return malformed("a string is too long");
  memcpy(text, scanner->at, length);
  text[length] = '\0';
  scanner->at = close + 1;
  return NULL;
}

static o3_status_t scan_size(npy_scanner_t *scanner, int64_t *size) {
  skip_spaces(scanner);
  const char *start = scanner->at;
  *size = 0;
  for (; scanner->at < scanner->end && isdigit((unsigned char)*scanner->at); ++scanner->at) {
    if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, *scanner->at - '0', size)) {
      return malformed("a dimension is larger than 2^63");
    }
  }
  return scanner->at == start ? malformed("a dimension expected in the shape") : NULL;
}

static o3_status_t scan_descr(npy_scanner_t *scanner, npy_header_t *header, o3_tensor_t *tensor) {
  (void)tensor;
  return scan_string(scanner, header->descr, sizeof header->descr);
}

static o3_status_t scan_fortran_order(npy_scanner_t *scanner, npy_header_t *header, o3_tensor_t *tensor) {
  (void)tensor;
  header->fortran_order = accept(scanner, "True");
  return header->fortran_order || accept(scanner, "False") ? NULL
                                                           : malformed("fortran_order is not True or False");
}

static o3_status_t scan_shape(npy_scanner_t *scanner, npy_header_t *header, o3_tensor_t *tensor) {
  (void)header;
  if (!accept(scanner, "(")) return malformed("the shape is not a tuple");
  while (!accept(scanner, ")")) {
    if (tensor->rank == O3_MAX_RANK) {
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "the array has more than %d dimensions",
                              O3_MAX_RANK);
    }
    O3_TRY(scan_size(scanner, &tensor->shape[tensor->rank++]));
    if (!accept(scanner, ",")) {
      return accept(scanner, ")") ? NULL : malformed("',' or ')' expected in the shape");
    }
  }
  return NULL;
}

static const struct {
  const char *name;
  o3_status_t (*scan)(npy_scanner_t *, npy_header_t *, o3_tensor_t *);
} npy_keys[] = {{"descr", scan_descr}, {"fortran_order", scan_fortran_order}, {"shape", scan_shape}};
#define NPY_KEYS (sizeof npy_keys / sizeof *npy_keys)

static o3_status_t scan_entry(npy_scanner_t *scanner, npy_header_t *header, o3_tensor_t *tensor) {
  char key[32];
  O3_TRY(scan_string(scanner, key, sizeof key));
  if (!accept(scanner, ":")) return malformed("':' expected after a key");
  for (size_t i = 0; i < NPY_KEYS; ++i) {
    if (strcmp(key, npy_keys[i].name) != 0) continue;
    if (header->seen & 1u << i) return malformed("a key comes twice");
    header->seen |= 1u << i;
    return npy_keys[i].scan(scanner, header, tensor);
  }
  return malformed("a key other than descr, fortran_order and shape");
}

static o3_status_t scan_dictionary(npy_scanner_t *scanner, npy_header_t *header, o3_tensor_t *tensor) {
  if (!accept(scanner, "{")) return malformed("'{' expected");
  while (!accept(scanner, "}")) {
    O3_TRY(scan_entry(scanner, header, tensor));
    if (!accept(scanner, ",")) {
      if (accept(scanner, "}")) break;
      return malformed("',' or '}' expected");
    }
  }
  skip_spaces(scanner);
  if (scanner->at != scanner->end) return malformed("text after the dictionary");
  return header->seen == (1u << NPY_KEYS) - 1 ? NULL : malformed("descr, fortran_order or shape is missing");
}

/* "<f4": byte order (< little, > big, | and = do not matter or native), letter, bytes. */
static o3_status_t resolve_descr(npy_header_t *header, o3_tensor_t *tensor) {
  const char *descr = header->descr, *type = descr + strspn(descr, "<>|=");
  for (int32_t dtype = 0; dtype <= O3_BFLOAT16; ++dtype) {
    const o3_element_t *element = o3_tensorio_element_get(dtype);
    char wanted[16];
    if (!element) continue;
    snprintf(wanted, sizeof wanted, "%c%zu", element->npy_letter, element->size);
    const bool boolean = dtype == O3_BOOL && !strcmp(type, "?");
    const bool byte = dtype == O3_UINT8 && (!strcmp(type, "V1") || !strcmp(type, "f1"));
    if (type - descr > 1 || (strcmp(type, wanted) != 0 && !boolean && !byte)) continue;
    tensor->dtype = element->dtype;
    header->swapped = descr[0] == '>' && element->size > 1;
    return NULL;
  }
  return o3_status_create(O3_STATUS_UNSUPPORTED,
                          "the array's element type (descr) is '%s', which O3 does not have", descr);
}

/* Finds the header's text: versions 2 and 3 hold its length in four bytes, version 1 in two. */
static o3_status_t open_header(const uint8_t *data, size_t size, npy_scanner_t *scanner,
                               size_t *data_offset) {
  if (size < NPY_MAGIC_SIZE + 4 || memcmp(data, NPY_MAGIC, NPY_MAGIC_SIZE) != 0) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "not a .npy file: it does not begin with \\x93NUMPY");
  }
  const unsigned major = data[6];
  if (major < 1 || major > 3) {
    return o3_status_create(O3_STATUS_UNSUPPORTED, ".npy format version %u.%u, 1.0 to 3.0 are known", major,
                            data[7]);
  }
  const size_t start = NPY_MAGIC_SIZE + (major == 1 ? 4 : 6);
  if (size < start) return malformed("the file ends before the header");
  size_t length = data[8] | (size_t)data[9] << 8;
  if (major > 1) length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
  if (length > size - start) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "malformed .npy header: it has %zu bytes, the file has %zu left", length,
                            size - start);
  }
  *scanner = (npy_scanner_t){(const char *)data + start, (const char *)data + start + length};
  *data_offset = start + length;
  return NULL;
}

static void swap_bytes(o3_tensor_t *tensor, int64_t count, size_t width) {
  uint8_t *bytes = tensor->data;
  for (int64_t i = 0; i < count; ++i, bytes += width) {
    for (size_t low = 0, high = width - 1; low < high; ++low, --high) {
      const uint8_t saved = bytes[low];
      bytes[low] = bytes[high];
      bytes[high] = saved;
    }
  }
}

/* Copies |count| elements stored first-dimension-fastest into row-major order: |index| counts in row-major
 * order while |from| follows it with the strides of the file. */
static void copy_fortran(o3_tensor_t *tensor, const uint8_t *source, int64_t count, size_t width) {
  int64_t strides[O3_MAX_RANK], index[O3_MAX_RANK] = {0}, stride = 1, from = 0;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    strides[i] = stride;
    stride *= tensor->shape[i];
  }
  for (int64_t to = 0; to < count; ++to) {
    memcpy((uint8_t *)tensor->data + (size_t)to * width, source + (size_t)from * width, width);
    for (int32_t i = tensor->rank - 1; i >= 0; --i) {
      from += strides[i];
      if (++index[i] < tensor->shape[i]) break;
      from -= strides[i] * tensor->shape[i];
      index[i] = 0;
    }
  }
}

/* Fills |tensor|, whose type and shape are known, from the elements at |source|. */
static o3_status_t copy_elements(const npy_header_t *header, const uint8_t *source, size_t size,
                                 o3_tensor_t *tensor) {
  int64_t count;
  size_t bytes;
  O3_TRY(o3_tensorio_measure(tensor, &count, &bytes));
  if (bytes != size) {
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                            "the array's shape and type need %zu bytes, the file has %zu", bytes, size);
  }
  O3_TRY(o3_tensorio_tensor_init(tensor));
  const size_t width = o3_tensorio_element_get((int32_t)tensor->dtype)->size;
  if (header->fortran_order) {
    copy_fortran(tensor, source, count, width);
  } else {
    memcpy(tensor->data, source, bytes);
  }
  if (header->swapped) swap_bytes(tensor, count, width);
  return o3_tensorio_bools_check(tensor);
}

o3_status_t o3_tensorio_npy_parse(const uint8_t *data, size_t size, o3_tensor_t *tensor) {
  npy_header_t header = {0};
  npy_scanner_t scanner;
  *tensor = (o3_tensor_t){0};
  O3_TRY(open_header(data, size, &scanner, &header.data_offset));
  O3_TRY(scan_dictionary(&scanner, &header, tensor));
  O3_TRY(resolve_descr(&header, tensor));
  o3_status_t status = copy_elements(&header, data + header.data_offset, size - header.data_offset, tensor);
  if (status) o3_tensorio_tensor_deinit(tensor);
  return status;
}

static void print_dictionary(o3_strbuf_t *text, const o3_tensor_t *tensor, const o3_element_t *element) {
  const char order = element->size > 1 ? '<' : '|';
  o3_strbuf_printf(text, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (", order,
                   element->npy_letter, element->size);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    o3_strbuf_printf(text, "%s%" PRId64 "%s", i ? " " : "", tensor->shape[i],
                     i + 1 < tensor->rank || tensor->rank == 1 ? "," : "");
  }
  o3_strbuf_puts(text, "), }");
}

o3_status_t o3_tensorio_npy_print(const o3_tensor_t *tensor, uint8_t **data, size_t *size) {
  size_t bytes, prefix = NPY_MAGIC_SIZE + 4;
  o3_strbuf_t text = O3_STRBUF_INIT;
  *data = NULL;
  *size = 0;
  O3_TRY(o3_tensorio_measure(tensor, NULL, &bytes));
  print_dictionary(&text, tensor, o3_tensorio_element_get((int32_t)tensor->dtype));
  while ((prefix + text.length + 1) % NPY_ALIGNMENT && !text.failed) o3_strbuf_puts(&text, " ");
  o3_strbuf_puts(&text, "\n");
  if (!text.failed) *data = o3_fault_malloc(prefix + text.length + bytes);
  if (!*data) {
    o3_strbuf_deinit(&text);
    return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory for a .npy file of %zu bytes", bytes);
  }
  /* At most 16 dimensions of 20 characters: the length fits the two bytes of version 1. */
  memcpy(*data, NPY_MAGIC "\x01\x00", NPY_MAGIC_SIZE + 2);
  (*data)[8] = (uint8_t)text.length;
  (*data)[9] = (uint8_t)(text.length >> 8);
  memcpy(*data + prefix, text.text, text.length);
  if (bytes) memcpy(*data + prefix + text.length, tensor->data, bytes);
  *size = prefix + text.length + bytes;
  o3_strbuf_deinit(&text);
  return NULL;
}

o3_status_t o3_tensorio_npy_write(const char *path, const o3_tensor_t *tensor) {
  uint8_t *data;
  size_t size;
  O3_TRY_CONTEXT(o3_tensorio_npy_print(tensor, &data, &size), "'%s'", path);
  o3_status_t status = o3_file_write(path, data, size);
  free(data);
  return status;
}
