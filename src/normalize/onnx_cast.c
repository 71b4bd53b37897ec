/* Changes of element type. */
#include <strings.h>

#include "normalize/nz.h"

/* The names of TensorProto.DataType, by number: `to` was one of them before opset 6. */
static const char *const DATA_TYPES[] = {"UNDEFINED", "FLOAT",  "UINT8",     "INT8",      "UINT16",  "INT16",
                                         "INT32",     "INT64",  "STRING",    "BOOL",      "FLOAT16", "DOUBLE",
                                         "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128"};

static o3_status_t read_type(o3_nz_t *nz, const o3_node_t *node, MlirType *to) {
  int64_t number = 0, count = (int64_t)(sizeof(DATA_TYPES) / sizeof(DATA_TYPES[0]));
  if (node->opset < 6) {
    const char *name = o3_node_string(nz, node, "to", "UNDEFINED");
    while (number < count && strcasecmp(DATA_TYPES[number], name) != 0) ++number;
    if (number == count) return o3_nz_invalid(nz, "to is '%s', which names no element type", name);
  } else {
    number = o3_node_int(node, "to", 0);
  }
  *to = o3_nz_onnx_type(nz, number);
  return NULL;
}

/* A Cast of the model: one to halves is marked, for its rounding is meant, not that of a node which computes
 * in f32. */
static MlirValue cast(o3_nz_t *nz, const o3_node_t *node, MlirType to) {
  MlirValue x = o3_node_input(node, 0);
  MlirValue y = o3_nz_cast_float8(nz, x, to, o3_node_int(node, "saturate", 1) != 0);
  if (o3_nz_failed(nz) || mlirValueEqual(x, y)) return y;
  if (mlirTypeIsAF16(to) || mlirTypeIsABF16(to))
    mlirOperationSetAttributeByName(o3_value_def(y), O3_STR("rounds"), o3_attr_bool(nz->context, true));
  return y;
}

/* round_mode concerns float8e8m0 only, which is refused by name. */
o3_status_t o3_onnx_cast(o3_nz_t *nz, o3_node_t *node) {
  MlirType to;
  O3_TRY(read_type(nz, node, &to));
  node->outputs[0] = cast(nz, node, to);
  return NULL;
}

o3_status_t o3_onnx_cast_like(o3_nz_t *nz, o3_node_t *node) {
  MlirType to = o3_nz_element(nz, o3_node_input(node, 1));
  node->outputs[0] = cast(nz, node, to);
  return NULL;
}

/* A bool is the byte 0 or 1, and any byte but 0 is true: that is a cast. */
o3_status_t o3_onnx_bit_cast(o3_nz_t *nz, o3_node_t *node) {
  MlirValue x = o3_node_input(node, 0);
  MlirType from = o3_nz_element(nz, x), to = o3_nz_onnx_type(nz, o3_node_int(node, "to", 0));
  if (o3_nz_failed(nz)) return NULL;
  if (o3_type_bits(from) != o3_type_bits(to))
    return o3_nz_invalid(nz, "elements of %d bits cannot become %d bits", o3_type_bits(from),
                         o3_type_bits(to));
  bool same = mlirTypeEqual(from, to) || o3_type_is_bool(from) || o3_type_is_bool(to);
  node->outputs[0] = same ? o3_nz_cast(nz, x, to)
                          : o3_nz_op(nz, "o3.bitcast", O3_VALUES(x), O3_ATTRS({"to", o3_attr_type(to)}));
  return NULL;
}
