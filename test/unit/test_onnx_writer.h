/* Writes ONNX files field by field, by the numbers of the ONNX specification: nothing of the importer's own
 * schema is used, so both would have to be wrong in the same way.
 *
 *     msg_t graph = MSG, model = MSG;
 *     msg_text(&graph, GRAPH_NAME, "g");
 *     msg_take(&model, MODEL_GRAPH, &graph);
 */
#ifndef O3_TEST_UNIT_TEST_ONNX_WRITER_H
#define O3_TEST_UNIT_TEST_ONNX_WRITER_H

#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"

enum { MODEL_IR = 1, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum {
  GRAPH_NODE = 1,
  GRAPH_NAME = 2,
  GRAPH_INITIALIZER = 5,
  GRAPH_INPUT = 11,
  GRAPH_OUTPUT = 12,
  GRAPH_SPARSE = 15
};
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum {
  ATTR_NAME = 1,
  ATTR_INT = 3,
  ATTR_TENSOR = 5,
  ATTR_GRAPH = 6,
  ATTR_INTS = 8,
  ATTR_TYPE = 20,
  ATTR_REF = 21
};
enum {
  TENSOR_DIMS = 1,
  TENSOR_TYPE = 2,
  TENSOR_INT32 = 5,
  TENSOR_INT64 = 7,
  TENSOR_NAME = 8,
  TENSOR_RAW = 9
};
enum { TENSOR_UINT64 = 11, TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14 };
enum { FUNCTION_NAME = 1, FUNCTION_INPUT = 4, FUNCTION_OUTPUT = 5, FUNCTION_NODE = 7, FUNCTION_OPSET = 9 };
enum { FUNCTION_ATTRIBUTE = 6, FUNCTION_DOMAIN = 10 };
enum { TYPE_FLOAT = 1, TYPE_UINT8 = 2, TYPE_INT64 = 7, TYPE_STRING = 8, TYPE_BOOL = 9, TYPE_FLOAT16 = 10 };
enum { TYPE_UINT32 = 12, TYPE_INT4 = 22 };

typedef o3_strbuf_t msg_t;
#define MSG O3_STRBUF_INIT

static inline void msg_varint(msg_t *msg, uint64_t value) {
  for (; value > 0x7f; value >>= 7) o3_strbuf_append(msg, (const char[]){(char)(value | 0x80)}, 1);
  o3_strbuf_append(msg, (const char[]){(char)value}, 1);
}

static inline void msg_int(msg_t *msg, unsigned field, int64_t value) {
  msg_varint(msg, field << 3);
  msg_varint(msg, (uint64_t)value);
}

static inline void msg_bytes(msg_t *msg, unsigned field, const void *data, size_t size) {
  msg_varint(msg, field << 3 | 2);
  msg_varint(msg, size);
  o3_strbuf_append(msg, data, size);
}

static inline void msg_text(msg_t *msg, unsigned field, const char *text) {
  msg_bytes(msg, field, text, strlen(text));
}

/* Writes |child| and frees it. */
static inline void msg_take(msg_t *msg, unsigned field, msg_t *child) {
  msg_bytes(msg, field, child->text ? child->text : "", child->length);
  o3_strbuf_deinit(child);
}

/* ---- Parts of a model. A list of names is one string: "a b" is two, "a - b" has an omitted one. ---- */

static inline void msg_names(msg_t *msg, unsigned field, const char *names) {
  for (const char *at = names; *at;) {
    size_t length = strcspn(at, " ");
    msg_bytes(msg, field, at, length == 1 && *at == '-' ? 0 : length);
    at += length + (at[length] == ' ');
  }
}

static inline msg_t make_node(const char *name, const char *op, const char *inputs, const char *outputs) {
  msg_t node = MSG;
  msg_names(&node, NODE_INPUT, inputs);
  msg_names(&node, NODE_OUTPUT, outputs);
  if (*name) msg_text(&node, NODE_NAME, name);
  msg_text(&node, NODE_OP, op);
  return node;
}

static inline void add_node(msg_t *graph, const char *name, const char *op, const char *inputs,
                            const char *outputs) {
  msg_t node = make_node(name, op, inputs, outputs);
  msg_take(graph, GRAPH_NODE, &node);
}

/* An attribute of type |type| whose payload the caller adds. */
static inline msg_t make_attribute(const char *name, int type) {
  msg_t attribute = MSG;
  msg_text(&attribute, ATTR_NAME, name);
  msg_int(&attribute, ATTR_TYPE, type);
  return attribute;
}

static inline void add_int(msg_t *node, const char *name, int64_t value) {
  msg_t attribute = make_attribute(name, 2);
  msg_int(&attribute, ATTR_INT, value);
  msg_take(node, NODE_ATTRIBUTE, &attribute);
}

static inline void add_graph(msg_t *node, const char *name, msg_t *graph) {
  msg_t attribute = make_attribute(name, 5);
  msg_take(&attribute, ATTR_GRAPH, graph);
  msg_take(node, NODE_ATTRIBUTE, &attribute);
}

/* A graph input or output; |dims| as names: "N 4 -". A NULL |dims| leaves the type out. */
static inline void add_value(msg_t *graph, unsigned field, const char *name, int type, const char *dims) {
  msg_t info = MSG, shape = MSG, tensor = MSG, proto = MSG;
  msg_text(&info, 1, name);
  for (const char *at = dims ? dims : ""; *at;) {
    size_t length = strcspn(at, " ");
    msg_t dim = MSG;
    int64_t size = 0;
    bool number = false, negative = length > 1 && *at == '-';
    for (size_t i = negative; i < length && at[i] >= '0' && at[i] <= '9'; ++i) {
      size = size * 10 + at[i] - '0';
      number = true;
    }
    if (number) msg_int(&dim, 1, negative ? -size : size);
    if (!number && *at != '-') msg_bytes(&dim, 2, at, length);
    msg_take(&shape, 1, &dim);
    at += length + (at[length] == ' ');
  }
  msg_int(&tensor, 1, type);
  msg_take(&tensor, 2, &shape);
  msg_take(&proto, 1, &tensor);
  if (dims) msg_take(&info, 2, &proto);
  o3_strbuf_deinit(&proto);
  msg_take(graph, field, &info);
}

/* A tensor without data. */
static inline msg_t make_tensor(const char *name, int type, int rank, const int64_t *dims) {
  msg_t tensor = MSG;
  for (int i = 0; i < rank; ++i) msg_int(&tensor, TENSOR_DIMS, dims[i]);
  msg_int(&tensor, TENSOR_TYPE, type);
  msg_text(&tensor, TENSOR_NAME, name);
  return tensor;
}

static inline void add_floats(msg_t *graph, const char *name, int count, const float *data) {
  msg_t tensor = make_tensor(name, TYPE_FLOAT, 1, (const int64_t[]){count});
  msg_bytes(&tensor, TENSOR_RAW, data, (size_t)count * sizeof(float));
  msg_take(graph, GRAPH_INITIALIZER, &tensor);
}

static inline void add_opset(msg_t *msg, unsigned field, const char *domain, int64_t version) {
  msg_t opset = MSG;
  msg_text(&opset, OPSET_DOMAIN, domain);
  msg_int(&opset, OPSET_VERSION, version);
  msg_take(msg, field, &opset);
}

/* A model of IR version 8 and opset 17 around |graph|. */
static inline msg_t make_model(msg_t *graph) {
  msg_t model = MSG;
  msg_int(&model, MODEL_IR, 8);
  add_opset(&model, MODEL_OPSET, "", 17);
  msg_take(&model, MODEL_GRAPH, graph);
  return model;
}

#endif
