/* Tensors in memory and in files: NumPy .npy and .npz, ONNX TensorProto .pb.
 *
 * The tensors are o3_tensor_t of <o3/model.h>: row-major, contiguous. Those that a function here makes
 * own their data (64-byte aligned) and are ended with o3_tensorio_tensor_deinit. Files are taken as
 * hostile: every size is checked against what the file holds before memory is asked for.
 *
 *     o3_tensor_list_t list;
 *     O3_TRY(o3_tensorio_file_read("x.npy", &list));
 *     use(&list.items[0].tensor);
 *     o3_tensorio_list_deinit(&list);
 */
#ifndef O3_TENSORIO_TENSOR_H
#define O3_TENSORIO_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/strbuf.h"
#include "o3/model.h"

typedef enum o3_element_kind {
  O3_ELEMENT_FLOAT,
  O3_ELEMENT_SIGNED,
  O3_ELEMENT_UNSIGNED,
  O3_ELEMENT_BOOL
} o3_element_kind_t;

/* An element type. |load| gives an element's value (rounded when a 64-bit integer has more than 53
 * bits), |bits| its bits: integers sign- or zero-extended, floats zero-extended. |store| rounds to the
 * type; the value must lie within its range. */
typedef struct o3_element {
  o3_dtype_t dtype;
  const char *name; /* "float32" */
  size_t size;      /* bytes */
  o3_element_kind_t kind;
  char npy_letter;
  double (*load)(const void *data, int64_t index);
  uint64_t (*bits)(const void *data, int64_t index);
  void (*store)(void *data, int64_t index, double value);
} o3_element_t;

/* The element type of number |dtype| (ONNX's numbers); NULL when O3 does not have it. Static. */
const o3_element_t *o3_tensorio_element_get(int32_t dtype);
/* Its name, or "unknown type". Static. */
const char *o3_tensorio_element_name(int32_t dtype);

/* Number of elements and bytes of a tensor of this type and shape; either pointer may be NULL.
 * INVALID_ARGUMENT for an unknown type, a rank outside 0..O3_MAX_RANK, a negative size, or a total
 * of more than PTRDIFF_MAX bytes. */
o3_status_t o3_tensorio_measure(const o3_tensor_t *tensor, int64_t *count, size_t *bytes) O3_MUST_USE;

/* Zeroed data for a tensor with |dtype|, |rank| and |shape| set by the caller. |data| is NULL on failure. */
o3_status_t o3_tensorio_tensor_init(o3_tensor_t *tensor) O3_MUST_USE;
void o3_tensorio_tensor_deinit(o3_tensor_t *tensor);

/* INVALID_ARGUMENT, naming the element, when a boolean is neither 0 nor 1; fine for other types. */
o3_status_t o3_tensorio_bools_check(const o3_tensor_t *tensor) O3_MUST_USE;

/* Appends "[1,3,224]". */
void o3_tensorio_shape_print(o3_strbuf_t *text, int32_t rank, const int64_t *shape);

/* |name| is malloc'ed, or NULL where the file gives none. */
typedef struct o3_named_tensor {
  char *name;
  o3_tensor_t tensor;
} o3_named_tensor_t;

/* Owns its names and tensors. */
typedef struct o3_tensor_list {
  o3_named_tensor_t *items;
  size_t count;
} o3_tensor_list_t;

void o3_tensorio_list_deinit(o3_tensor_list_t *list);

/* Reads a file by its ending: .npy (one tensor, no name), .pb (one), .npz (any number, names without
 * ".npy"). The message begins with the path. *|list| is empty on failure. */
o3_status_t o3_tensorio_file_read(const char *path, o3_tensor_list_t *list) O3_MUST_USE;

/* One tensor from the |size| bytes of a .npy file, format versions 1 to 3: any byte order, C or Fortran
 * order. NumPy has no bfloat16; it is stored as two-byte voids (descr 'V2'), as ml_dtypes does.
 * 8-bit floats are written as uint8; what ml_dtypes stores of them (descr 'V1' or 'f1') is read as uint8, for
 * it does not tell which they are: see o3_tensorio_relabel. INVALID_ARGUMENT for a malformed file,
 * UNSUPPORTED for an element type O3 does not have. */
o3_status_t o3_tensorio_npy_parse(const uint8_t *data, size_t size, o3_tensor_t *tensor) O3_MUST_USE;
/* All arrays of the bytes of a .npz file (stored or deflated). */
o3_status_t o3_tensorio_npz_parse(const uint8_t *data, size_t size, o3_tensor_list_t *list) O3_MUST_USE;
/* One tensor from a serialised ONNX TensorProto, with its name. Strings, 4-bit floats, segments
 * and external data are UNSUPPORTED. */
o3_status_t o3_tensorio_onnx_parse(const uint8_t *data, size_t size, o3_named_tensor_t *tensor) O3_MUST_USE;

/* Bytes from a file that does not know 8-bit floats are of |dtype| where that is one. */
void o3_tensorio_relabel(o3_tensor_t *tensor, o3_dtype_t dtype);

/* Writes a .npy file, version 1, whole or not at all. */
o3_status_t o3_tensorio_npy_write(const char *path, const o3_tensor_t *tensor) O3_MUST_USE;
/* Writes an uncompressed .npz file with an array per item, whole or not at all; every item has a name. */
o3_status_t o3_tensorio_npz_write(const char *path, const o3_named_tensor_t *items, size_t count) O3_MUST_USE;

/* The bytes of a .npy file: *|data| is malloc'ed and the caller's to free. */
o3_status_t o3_tensorio_npy_print(const o3_tensor_t *tensor, uint8_t **data, size_t *size) O3_MUST_USE;

/* Fills |tensor| from a generator seeded with |seed|: floats normal (0, 1), integers uniform in
 * [low, high] as far as the type holds it, booleans fair. The same seed gives the same values. */
void o3_tensorio_random_fill(const o3_tensor_t *tensor, uint64_t seed, int64_t low, int64_t high);

#endif
