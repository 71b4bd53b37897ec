/* Tensor files: what is written reads back, what other tools write is read, and what is broken or hostile
 * gives an error (the sanitizer build sees that it does no harm). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/file.h"
#include "tensor.pb-c.h"
#include "tensorio/tensor.h"

static char folder[] = "/tmp/o3-tensorio-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  o3_file_temp_dir_remove(folder);
  return 0;
}

static const char *file_path(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void assert_ok(o3_status_t status) {
  if (status) fail_msg("%s", o3_status_message(status));
}

static void assert_message(o3_status_t status, const char *message) {
  assert_non_null(status);
  assert_string_equal(o3_status_message(status), message);
  o3_status_destroy(status);
}

/* The bytes of a version 1 .npy file. */
typedef struct bytes {
  uint8_t data[1024];
  size_t size;
} bytes_t;

static bytes_t npy_bytes(const char *header, const void *elements, size_t size) {
  bytes_t bytes = {.size = 10 + strlen(header) + size};
  assert_true(bytes.size <= sizeof bytes.data);
  memcpy(bytes.data, "\x93NUMPY\x01", 8);
  bytes.data[8] = (uint8_t)strlen(header);
  bytes.data[9] = (uint8_t)(strlen(header) >> 8);
  memcpy(bytes.data + 10, header, strlen(header));
  if (size) memcpy(bytes.data + 10 + strlen(header), elements, size);
  return bytes;
}

static o3_status_t parse_npy(const char *header, const void *elements, size_t size, o3_tensor_t *tensor) {
  const bytes_t bytes = npy_bytes(header, elements, size);
  return o3_tensorio_npy_parse(bytes.data, bytes.size, tensor);
}

static void test_round_trip(void **state) {
  (void)state;
  for (int32_t dtype = 0; dtype <= O3_FLOAT8E5M2FNUZ; ++dtype) {
    const o3_element_t *element = o3_tensorio_element_get(dtype);
    if (!element) continue;
    for (int32_t rank = 0; rank <= 4; ++rank) {
      o3_tensor_t tensor = {.dtype = (o3_dtype_t)dtype, .rank = rank, .shape = {2, 3, 1, 5}}, back;
      uint8_t *data;
      size_t size, bytes;
      assert_ok(o3_tensorio_tensor_init(&tensor));
      o3_tensorio_random_fill(&tensor, (uint64_t)dtype, 0, 100);
      assert_ok(o3_tensorio_measure(&tensor, NULL, &bytes));
      assert_ok(o3_tensorio_npy_print(&tensor, &data, &size));
      assert_int_equal((size - bytes) % 64, 0);
      assert_ok(o3_tensorio_npy_parse(data, size, &back));
      o3_tensorio_relabel(&back, (o3_dtype_t)dtype);
      assert_int_equal(back.dtype, dtype);
      assert_int_equal(back.rank, rank);
      assert_memory_equal(back.shape, tensor.shape, (size_t)rank * sizeof *tensor.shape);
      assert_memory_equal(back.data, tensor.data, bytes);
      assert_int_equal((uintptr_t)back.data % 64, 0);
      free(data);
      o3_tensorio_tensor_deinit(&tensor);
      o3_tensorio_tensor_deinit(&back);
    }
  }
}

static void test_npy_orders(void **state) {
  (void)state;
  o3_tensor_t tensor;
  const int16_t columns[] = {1, 4, 2, 5, 3, 6}, rows[] = {1, 2, 3, 4, 5, 6};
  assert_ok(parse_npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '<i2'}\n", columns, sizeof columns,
                      &tensor));
  assert_memory_equal(tensor.data, rows, sizeof rows);
  o3_tensorio_tensor_deinit(&tensor);
  int16_t cube[24], transposed[24];
  for (int i = 0; i < 24; ++i)
    cube[i] = (int16_t)i, transposed[i % 4 * 6 + i / 4 % 3 * 2 + i / 12] = (int16_t)i;
  assert_ok(parse_npy("{'shape': (2, 3, 4), 'fortran_order': True, 'descr': '<i2'}\n", transposed,
                      sizeof transposed, &tensor));
  assert_memory_equal(tensor.data, cube, sizeof cube);
  o3_tensorio_tensor_deinit(&tensor);
  assert_ok(
      parse_npy("{'shape': (), 'fortran_order': True, 'descr': '>i4'}", "\x01\x02\x03\x04", 4, &tensor));
  assert_int_equal(*(int32_t *)tensor.data, 0x01020304);
  o3_tensorio_tensor_deinit(&tensor);
  assert_ok(parse_npy("{\"descr\":\"?\",\"fortran_order\":False,\"shape\":(1,)}", "\x01", 1, &tensor));
  assert_int_equal(tensor.dtype, O3_BOOL);
  o3_tensorio_tensor_deinit(&tensor);
  assert_ok(parse_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 2), }", NULL, 0, &tensor));
  assert_non_null(tensor.data);
  o3_tensorio_tensor_deinit(&tensor);
}

static void test_npy_versions(void **state) {
  (void)state;
  static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
  uint8_t file[128] = "\x93NUMPY\x02";
  o3_tensor_t tensor;
  file[8] = sizeof header - 1;
  memcpy(file + 12, header, sizeof header - 1);
  memcpy(file + 12 + sizeof header - 1, "\x07\x08", 2);
  for (uint8_t version = 2; version <= 3; ++version) {
    file[6] = version;
    assert_ok(o3_tensorio_npy_parse(file, 12 + sizeof header + 1, &tensor));
    assert_memory_equal(tensor.data, "\x07\x08", 2);
    o3_tensorio_tensor_deinit(&tensor);
  }
  file[6] = 4;
  assert_message(o3_tensorio_npy_parse(file, sizeof file, &tensor),
                 ".npy format version 4.0, 1.0 to 3.0 are known");
}

static void test_npy_malformed(void **state) {
  (void)state;
  static const struct {
    const char *header, *message;
  } rows[] = {
      {"", "malformed .npy header: '{' expected"},
      {"{", "malformed .npy header: a string expected (structured types are not supported)"},
      {"{}", "malformed .npy header: descr, fortran_order or shape is missing"},
      {"{'descr': '<f4'}", "malformed .npy header: descr, fortran_order or shape is missing"},
      {"{'descr': '<f4', 'descr': '<f4'}", "malformed .npy header: a key comes twice"},
      {"{'descr': [('a', '<f4')]}",
       "malformed .npy header: a string expected (structured types are not supported)"},
      {"{'descr': '<f4", "malformed .npy header: a string does not end"},
      {"{'descr': '<f4444444444444444444'}", "malformed .npy header: a string is too long"},
      {"{'other': 1}", "malformed .npy header: a key other than descr, fortran_order and shape"},
      {"{'shape' (1,)}", "malformed .npy header: ':' expected after a key"},
      {"{'shape': 1}", "malformed .npy header: the shape is not a tuple"},
      {"{'shape': (1 2)}", "malformed .npy header: ',' or ')' expected in the shape"},
      {"{'shape': (-1,)}", "malformed .npy header: a dimension expected in the shape"},
      {"{'shape': (1,", "malformed .npy header: a dimension expected in the shape"},
      {"{'shape': (9223372036854775808,)}", "malformed .npy header: a dimension is larger than 2^63"},
      {"{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", "the array has more than 16 dimensions"},
      {"{'fortran_order': 0}", "malformed .npy header: fortran_order is not True or False"},
      {"{'shape': (1,) 'descr'", "malformed .npy header: ',' or '}' expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
       "malformed .npy header: text after the dictionary"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
       "the array's element type (descr) is '|O', which O3 does not have"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
       "the array's element type (descr) is '<c8', which O3 does not have"},
      {"{'descr': '<<f4', 'fortran_order': False, 'shape': (1,)}",
       "the array's element type (descr) is '<<f4', which O3 does not have"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,)}",
       "the array's element type (descr) is '', which O3 does not have"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
       "the array's shape and type need 8 bytes, the file has 4"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
       "the shape has more than 9223372036854775807 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}",
       "the shape has more than 9223372036854775807 bytes"},
      {"{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", "boolean 2 is 9, 0 or 1 expected"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    o3_tensor_t tensor;
    assert_message(parse_npy(rows[i].header, "\x00\x01\x09\x00", 4, &tensor), rows[i].message);
    assert_null(tensor.data);
  }
}

/* A small valid file of each format, to be broken. */
static o3_named_tensor_t sample(void) {
  o3_named_tensor_t item = {.name = strdup("a"), .tensor = {.dtype = O3_FLOAT32, .rank = 2, .shape = {2, 3}}};
  assert_non_null(item.name);
  assert_ok(o3_tensorio_tensor_init(&item.tensor));
  o3_tensorio_random_fill(&item.tensor, 1, 0, 9);
  return item;
}

static void test_npz(void **state) {
  (void)state;
  o3_named_tensor_t items[2] = {sample(), sample()};
  o3_tensor_list_t list;
  free(items[1].name);
  items[1].name = strdup("b/c \xc3\xa4");
  assert_ok(o3_tensorio_npz_write(file_path("two.npz"), items, 2));
  assert_ok(o3_tensorio_npz_write(file_path("two.npz"), items, 2)); /* over the old one */
  assert_ok(o3_tensorio_file_read(file_path("two.npz"), &list));
  assert_int_equal(list.count, 2);
  for (int i = 0; i < 2; ++i) {
    assert_string_equal(list.items[i].name, items[i].name);
    assert_memory_equal(list.items[i].tensor.data, items[i].tensor.data, 24);
    free(items[i].name);
    o3_tensorio_tensor_deinit(&items[i].tensor);
  }
  o3_tensorio_list_deinit(&list);
}

/* An archive with one entry of |size| bytes, compressed by |method|. */
static bytes_t zip_bytes(const char *name, const void *data, size_t size, zip_int32_t method) {
  zip_error_t error;
  zip_stat_t stat;
  bytes_t bytes;
  zip_source_t *archive_source = zip_source_buffer_create(NULL, 0, 0, &error);
  zip_t *archive = zip_open_from_source(archive_source, ZIP_TRUNCATE, &error);
  assert_non_null(archive);
  zip_source_keep(archive_source);
  zip_source_t *source = zip_source_buffer(archive, data, size, 0);
  const zip_int64_t index = zip_file_add(archive, name, source, 0);
  assert_true(index >= 0);
  assert_int_equal(zip_set_file_compression(archive, (zip_uint64_t)index, method, 9), 0);
  assert_int_equal(zip_close(archive), 0);
  assert_int_equal(zip_source_stat(archive_source, &stat), 0);
  assert_true(stat.size <= sizeof bytes.data);
  assert_int_equal(zip_source_open(archive_source), 0);
  bytes.size = (size_t)zip_source_read(archive_source, bytes.data, sizeof bytes.data);
  assert_int_equal(bytes.size, stat.size);
  zip_source_close(archive_source);
  zip_source_free(archive_source);
  return bytes;
}

static void test_npz_malformed(void **state) {
  (void)state;
  o3_tensor_list_t list;
  assert_message(o3_tensorio_npz_parse((const uint8_t *)"junk", 4, &list),
                 "not a .npz file: Not a zip archive");
  bytes_t bytes = zip_bytes("a.txt", "x", 1, ZIP_CM_STORE);
  assert_message(o3_tensorio_npz_parse(bytes.data, bytes.size, &list),
                 "array 'a.txt': not an array: the name does not end in .npy");
  bytes = zip_bytes("a.npy", "x", 1, ZIP_CM_STORE);
  assert_message(o3_tensorio_npz_parse(bytes.data, bytes.size, &list),
                 "array 'a.npy': not a .npy file: it does not begin with \\x93NUMPY");
  assert_null(list.items);
  /* A wrong checksum: one byte of the stored data changed. */
  const bytes_t npy = npy_bytes("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}\n", "abcd", 4);
  bytes = zip_bytes("a.npy", npy.data, npy.size, ZIP_CM_STORE);
  uint8_t *element = memmem(bytes.data, bytes.size, "abcd", 4);
  assert_non_null(element);
  element[0] = 'x';
  assert_message(o3_tensorio_npz_parse(bytes.data, bytes.size, &list),
                 "array 'a.npy': unreadable entry: CRC error");
  bytes = zip_bytes("a.npy", npy.data, npy.size, ZIP_CM_BZIP2);
  assert_message(o3_tensorio_npz_parse(bytes.data, bytes.size, &list),
                 "array 'a.npy' is compressed by method 12, stored or deflate expected");
}

/* A bomb: the directory and the local header claim four gigabytes. */
static void test_npz_bomb(void **state) {
  (void)state;
  o3_tensor_list_t list;
  const bytes_t npy = npy_bytes("{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}\n", "abcd", 4);
  bytes_t bytes = zip_bytes("a.npy", npy.data, npy.size, ZIP_CM_DEFLATE);
  uint8_t *directory = memmem(bytes.data, bytes.size, "PK\x01\x02", 4);
  assert_non_null(directory);
  memcpy(directory + 24, "\x00\x00\x00\xf0", 4);
  memcpy(bytes.data + 22, "\x00\x00\x00\xf0", 4);
  o3_status_t status = o3_tensorio_npz_parse(bytes.data, bytes.size, &list);
  assert_non_null(status);
  assert_non_null(strstr(o3_status_message(status), "array 'a.npy' claims 4026531840 bytes, which "));
  o3_status_destroy(status);
}

typedef O3__Tensorio__TensorProto proto_t;

static bytes_t pack(const proto_t *proto) {
  bytes_t bytes = {.size = o3__tensorio__tensor_proto__get_packed_size(proto)};
  assert_true(bytes.size <= sizeof bytes.data);
  o3__tensorio__tensor_proto__pack(proto, bytes.data);
  return bytes;
}

static o3_status_t parse_proto(const proto_t *proto, o3_named_tensor_t *tensor) {
  const bytes_t bytes = pack(proto);
  return o3_tensorio_onnx_parse(bytes.data, bytes.size, tensor);
}

static proto_t proto_init(int32_t dtype, size_t rank, int64_t *dims) {
  proto_t proto = O3__TENSORIO__TENSOR_PROTO__INIT;
  proto.has_data_type = 1;
  proto.data_type = dtype;
  proto.n_dims = rank;
  proto.dims = dims;
  return proto;
}

static void test_onnx_raw(void **state) {
  (void)state;
  float values[] = {1, -2, 3};
  int64_t dims[] = {3, 1};
  proto_t proto = proto_init(O3_FLOAT32, 2, dims);
  o3_named_tensor_t item;
  proto.has_raw_data = 1;
  proto.raw_data = (ProtobufCBinaryData){sizeof values, (uint8_t *)values};
  proto.name = "x";
  assert_ok(parse_proto(&proto, &item));
  assert_string_equal(item.name, "x");
  assert_int_equal(item.tensor.rank, 2);
  assert_memory_equal(item.tensor.data, values, sizeof values);
  free(item.name);
  o3_tensorio_tensor_deinit(&item.tensor);
  proto.raw_data.len = 11;
  assert_message(parse_proto(&proto, &item), "raw_data has 11 bytes, the tensor's shape and type need 12");
  proto.raw_data.len = 12;
  proto.n_float_data = 3;
  proto.float_data = values;
  assert_message(parse_proto(&proto, &item),
                 "float_data is set, the tensor's type float32 wants its data in raw_data alone");
}

/* int32_data carries everything narrow, and the bits of narrow floats. */
static void test_onnx_int32_data(void **state) {
  (void)state;
  static const o3_dtype_t dtypes[] = {O3_INT32, O3_INT16,   O3_INT8,     O3_UINT16,       O3_UINT8,
                                      O3_BOOL,  O3_FLOAT16, O3_BFLOAT16, O3_FLOAT8E4M3FN, O3_FLOAT8E5M2FNUZ};
  int32_t values[] = {0, 1};
  int64_t dims[] = {2};
  o3_named_tensor_t item;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
    proto_t proto = proto_init((int32_t)dtypes[i], 1, dims);
    proto.n_int32_data = 2;
    proto.int32_data = values;
    assert_ok(parse_proto(&proto, &item));
    assert_null(item.name);
    assert_int_equal(o3_tensorio_element_get((int32_t)dtypes[i])->bits(item.tensor.data, 1), 1);
    o3_tensorio_tensor_deinit(&item.tensor);
  }
  proto_t proto = proto_init(O3_INT8, 1, dims);
  int32_t negative[] = {-128, 128};
  proto.n_int32_data = 2;
  proto.int32_data = negative;
  assert_message(parse_proto(&proto, &item), "int32_data[1] is 128, which int8 does not hold");
  proto.data_type = O3_UINT16;
  assert_message(parse_proto(&proto, &item), "int32_data[0] is -128, which uint16 does not hold");
  proto.data_type = O3_INT16;
  assert_ok(parse_proto(&proto, &item));
  assert_int_equal(((int16_t *)item.tensor.data)[0], -128);
  o3_tensorio_tensor_deinit(&item.tensor);
}

static void test_onnx_wide_fields(void **state) {
  (void)state;
  int64_t dims[] = {1}, wide[] = {INT64_MIN};
  uint64_t big[] = {UINT64_MAX};
  double real[] = {0.1};
  float single[] = {0.1f};
  o3_named_tensor_t item;
  proto_t proto = proto_init(O3_INT64, 1, dims);
  proto.n_int64_data = 1, proto.int64_data = wide;
  assert_ok(parse_proto(&proto, &item));
  assert_memory_equal(item.tensor.data, wide, 8);
  o3_tensorio_tensor_deinit(&item.tensor);
  proto = proto_init(O3_UINT64, 1, dims);
  proto.n_uint64_data = 1, proto.uint64_data = big;
  assert_ok(parse_proto(&proto, &item));
  assert_memory_equal(item.tensor.data, big, 8);
  o3_tensorio_tensor_deinit(&item.tensor);
  proto.data_type = O3_UINT32;
  assert_message(parse_proto(&proto, &item), "uint64_data[0] is -1, which uint32 does not hold");
  proto = proto_init(O3_FLOAT64, 1, dims);
  proto.n_double_data = 1, proto.double_data = real;
  assert_ok(parse_proto(&proto, &item));
  assert_memory_equal(item.tensor.data, real, 8);
  o3_tensorio_tensor_deinit(&item.tensor);
  proto = proto_init(O3_FLOAT32, 0, NULL);
  proto.n_float_data = 1, proto.float_data = single;
  assert_ok(parse_proto(&proto, &item));
  assert_memory_equal(item.tensor.data, single, 4);
  o3_tensorio_tensor_deinit(&item.tensor);
}

static void test_onnx_malformed(void **state) {
  (void)state;
  int64_t dims[17] = {[0] = 2, [1] = -1};
  float values[] = {1};
  o3_named_tensor_t item;
  assert_message(o3_tensorio_onnx_parse((const uint8_t *)"", 0, &item),
                 "not an ONNX TensorProto: it has no data_type");
  assert_message(o3_tensorio_onnx_parse((const uint8_t *)"\xff\xff", 2, &item),
                 "not an ONNX TensorProto: malformed protobuf");
  proto_t proto = proto_init(8, 1, dims);
  assert_message(parse_proto(&proto, &item), "the tensor's ONNX data_type is 8, which O3 does not have");
  proto = proto_init(O3_FLOAT32, 17, dims);
  assert_message(parse_proto(&proto, &item), "the tensor has 17 dimensions, at most 16 are supported");
  proto = proto_init(O3_FLOAT32, 2, dims);
  assert_message(parse_proto(&proto, &item), "dimension 1 is -1, at least 0 expected");
  proto = proto_init(O3_FLOAT32, 1, dims);
  assert_message(parse_proto(&proto, &item), "float_data has 0 elements, the tensor's shape needs 2");
  proto = proto_init(O3_INT32, 1, dims);
  proto.n_float_data = 1, proto.float_data = values;
  assert_message(parse_proto(&proto, &item),
                 "float_data is set, the tensor's type int32 wants its data in int32_data");
  proto = proto_init(O3_FLOAT32, 1, dims);
  proto.has_data_location = 1, proto.data_location = 1;
  assert_message(parse_proto(&proto, &item), "the tensor's data lies in another file (external_data)");
  dims[0] = dims[1] = INT64_C(1) << 40;
  proto = proto_init(O3_FLOAT32, 2, dims);
  assert_message(parse_proto(&proto, &item), "the shape has more than 9223372036854775807 bytes");
}

typedef o3_status_t (*parse_fn_t)(const uint8_t *data, size_t size);

static o3_status_t parse_as_npy(const uint8_t *data, size_t size) {
  o3_tensor_t tensor;
  o3_status_t status = o3_tensorio_npy_parse(data, size, &tensor);
  o3_tensorio_tensor_deinit(&tensor);
  return status;
}

static o3_status_t parse_as_npz(const uint8_t *data, size_t size) {
  o3_tensor_list_t list;
  o3_status_t status = o3_tensorio_npz_parse(data, size, &list);
  o3_tensorio_list_deinit(&list);
  return status;
}

static o3_status_t parse_as_onnx(const uint8_t *data, size_t size) {
  o3_named_tensor_t item;
  o3_status_t status = o3_tensorio_onnx_parse(data, size, &item);
  free(item.name);
  o3_tensorio_tensor_deinit(&item.tensor);
  return status;
}

static const parse_fn_t parsers[] = {parse_as_npy, parse_as_npz, parse_as_onnx};

/* One valid file for each of |parsers|. */
static void make_files(bytes_t files[3]) {
  int64_t dims[] = {4};
  int32_t values[] = {1, 2, 3, 400};
  files[0] = npy_bytes("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2)}\n", "abcdefgh", 8);
  files[1] = zip_bytes("a.npy", files[0].data, files[0].size, ZIP_CM_DEFLATE);
  proto_t proto = proto_init(O3_INT16, 1, dims);
  proto.name = "name";
  proto.n_int32_data = 4, proto.int32_data = values;
  files[2] = pack(&proto);
  for (int i = 0; i < 3; ++i) assert_ok(parsers[i](files[i].data, files[i].size));
}

/* Exact copies on the heap, so that a read past the end is seen. */
static void parse_copy(parse_fn_t parse, const uint8_t *data, size_t size, bool must_fail) {
  uint8_t *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, data, size);
  o3_status_t status = parse(copy, size);
  if (must_fail) assert_non_null(status);
  if (status) assert_true(strlen(o3_status_message(status)) > 0);
  o3_status_destroy(status);
  free(copy);
}

static void test_truncated(void **state) {
  (void)state;
  bytes_t files[3];
  make_files(files);
  for (int i = 0; i < 3; ++i) {
    for (size_t size = 0; size < files[i].size; ++size) {
      parse_copy(parsers[i], files[i].data, size, i < 2); /* a message may end after any field */
    }
  }
}

/* Every byte replaced by each of several values, and every file read as every format. */
static void test_mutated(void **state) {
  (void)state;
  static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, '9', '(', '\''};
  bytes_t files[3];
  make_files(files);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) parse_copy(parsers[j], files[i].data, files[i].size, i != j);
    for (size_t at = 0; at < files[i].size; ++at) {
      for (size_t v = 0; v < sizeof values; ++v) {
        bytes_t mutated = files[i];
        mutated.data[at] = values[v];
        parse_copy(parsers[i], mutated.data, mutated.size, false);
      }
    }
  }
}

/* Each allocation fails in turn: an out-of-memory status, nothing lost. */
static void test_out_of_memory(void **state) {
  (void)state;
  bytes_t files[3];
  make_files(files);
  for (int i = 0; i < 3; ++i) {
    for (uint64_t n = 1;; ++n) {
      o3_fault_alloc_arm(n);
      o3_status_t status = parsers[i](files[i].data, files[i].size);
      const bool failed = o3_fault_alloc_has_failed();
      o3_fault_alloc_arm(0);
      if (failed) {
        assert_int_equal(o3_status_code(status), O3_STATUS_OUT_OF_MEMORY);
      } else {
        assert_ok(status);
        break;
      }
      o3_status_destroy(status);
    }
  }
}

static void test_paths(void **state) {
  (void)state;
  o3_tensor_list_t list;
  assert_message(o3_tensorio_file_read("x.txt", &list),
                 "'x.txt' is no tensor file: its name must end in .npy, .npz or .pb");
  o3_status_t status = o3_tensorio_file_read(file_path("none.npy"), &list);
  assert_int_equal(o3_status_code(status), O3_STATUS_NOT_FOUND);
  o3_status_destroy(status);
  o3_named_tensor_t item = sample();
  assert_ok(o3_tensorio_npy_write(file_path("a.npy"), &item.tensor));
  assert_ok(o3_tensorio_file_read(file_path("a.npy"), &list));
  assert_memory_equal(list.items[0].tensor.data, item.tensor.data, 24);
  assert_null(list.items[0].name);
  o3_tensorio_list_deinit(&list);
  status = o3_tensorio_npz_write("/nonexistent/a.npz", &item, 1);
  assert_int_equal(o3_status_code(status), O3_STATUS_IO);
  o3_status_destroy(status);
  free(item.name);
  o3_tensorio_tensor_deinit(&item.tensor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_npy_orders),
      cmocka_unit_test(test_npy_versions),
      cmocka_unit_test(test_npy_malformed),
      cmocka_unit_test(test_npz),
      cmocka_unit_test(test_npz_malformed),
      cmocka_unit_test(test_npz_bomb),
      cmocka_unit_test(test_onnx_raw),
      cmocka_unit_test(test_onnx_int32_data),
      cmocka_unit_test(test_onnx_wide_fields),
      cmocka_unit_test(test_onnx_malformed),
      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_mutated),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_paths),
  };
  return cmocka_run_group_tests_name("tensorio_files", tests, make_folder, remove_folder);
}
