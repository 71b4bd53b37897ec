/* The file is copied on the level of the wire format, so that fields which this program does not know, and
 * weights that it does not touch, stay as they are. The result is a list of pieces: most lie in the mapped
 * file; lengths of messages that hold a changed tensor are written anew. */
#include "prune_write.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "import/onnx/onnx_wire.h"

/* Fields of TensorProto. */
enum { RAW_DATA = 9, EXTERNAL_DATA = 13, DATA_LOCATION = 14 };
static const uint32_t DATA_FIELDS[] = {4, 5, 7, 10, 11, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION};
enum { EXTERNAL = 1, PAGE = 4096 };

typedef struct pieces {
  o3_file_piece_t *items;
  size_t count, capacity;
} pieces_t;

typedef struct rewriter {
  prune_model_t *model;
  o3_ptr_map_t *changed; /* Onnx__TensorProto * -> prune_layer_t * */
  pieces_t out, data;
  uint64_t data_size;
  const char *data_name; /* as the model refers to it */
  bool needs_data;
} rewriter_t;

/* ---- Pieces ---- */

static o3_status_t grow(rewriter_t *self, pieces_t *pieces) {
  size_t capacity = pieces->capacity ? 2 * pieces->capacity : 1024;
  o3_file_piece_t *items = O3_ARENA_ARRAY(self->model->arena, o3_file_piece_t, capacity);
  O3_TRY_ALLOC(items);
  if (pieces->count) memcpy(items, pieces->items, pieces->count * sizeof(*items));
  pieces->items = items;
  pieces->capacity = capacity;
  return NULL;
}

/* Neighbours in the file become one piece. */
static o3_status_t append(rewriter_t *self, pieces_t *pieces, const void *data, size_t size) {
  o3_file_piece_t *last = pieces->count ? &pieces->items[pieces->count - 1] : NULL;
  if (last && last->size && (const char *)last->data + last->size == data) {
    last->size += size;
    return NULL;
  }
  if (pieces->count == pieces->capacity) O3_TRY(grow(self, pieces));
  pieces->items[pieces->count++] = (o3_file_piece_t){data, size};
  return NULL;
}

/* Tag and length of a field of bytes. */
static o3_status_t make_header(rewriter_t *self, uint32_t number, size_t length, o3_file_piece_t *header) {
  uint8_t *bytes = o3_arena_alloc(self->model->arena, 2 * O3_ONNX_WIRE_MAX_VARINT, 1);
  O3_TRY_ALLOC(bytes);
  size_t size = o3_onnx_wire_varint(bytes, (uint64_t)number << 3 | O3_ONNX_WIRE_BYTES);
  size += o3_onnx_wire_varint(bytes + size, length);
  *header = (o3_file_piece_t){bytes, size};
  return NULL;
}

static o3_status_t append_field(rewriter_t *self, uint32_t number, const void *data, size_t size,
                                size_t *total) {
  o3_file_piece_t header;
  O3_TRY(make_header(self, number, size, &header));
  O3_TRY(append(self, &self->out, header.data, header.size));
  *total += header.size + size;
  return append(self, &self->out, data, size);
}

/* ---- Tensors ---- */

static o3_status_t current_data(rewriter_t *self, const Onnx__TensorProto *tensor, const void **data,
                                size_t *bytes) {
  const prune_layer_t *layer = o3_ptr_map_get(self->changed, tensor);
  if (!layer) return prune_tensor_data(self->model, tensor, data, bytes);
  *data = layer->data;
  *bytes = layer->bytes;
  return NULL;
}

/* An entry of external_data: a message of two strings. */
static o3_status_t append_entry(rewriter_t *self, const char *key, const char *value, size_t *total) {
  uint8_t head[2][O3_ONNX_WIRE_MAX_VARINT];
  size_t sizes[2] = {strlen(key), strlen(value)}, heads[2], length = 0;
  for (int i = 0; i < 2; ++i) {
    heads[i] = o3_onnx_wire_varint(head[i], sizes[i]);
    length += 1 + heads[i] + sizes[i];
  }
  uint8_t *bytes = o3_arena_alloc(self->model->arena, length, 1), *at = bytes;
  O3_TRY_ALLOC(bytes);
  for (int i = 0; i < 2; ++i) {
    *at++ = (uint8_t)((i + 1) << 3 | O3_ONNX_WIRE_BYTES);
    memcpy(at, head[i], heads[i]);
    memcpy(at + heads[i], i ? value : key, sizes[i]);
    at += heads[i] + sizes[i];
  }
  return append_field(self, EXTERNAL_DATA, bytes, length, total);
}

static o3_status_t append_external(rewriter_t *self, const void *data, size_t bytes, size_t *total) {
  static const uint8_t ZEROS[PAGE], LOCATION[] = {DATA_LOCATION << 3 | O3_ONNX_WIRE_VARINT, EXTERNAL};
  char offset[32], length[32];
  size_t gap = (PAGE - self->data_size % PAGE) % PAGE;
  O3_TRY(append(self, &self->data, ZEROS, gap));
  O3_TRY(append(self, &self->data, data, bytes));
  self->data_size += gap;
  snprintf(offset, sizeof(offset), "%" PRIu64, self->data_size);
  snprintf(length, sizeof(length), "%zu", bytes);
  self->data_size += bytes;
  O3_TRY(append_entry(self, "location", self->data_name, total));
  O3_TRY(append_entry(self, "offset", offset, total));
  O3_TRY(append_entry(self, "length", length, total));
  *total += sizeof(LOCATION);
  return append(self, &self->out, LOCATION, sizeof(LOCATION));
}

static bool is_data_field(uint32_t number) {
  for (size_t i = 0; i < sizeof(DATA_FIELDS) / sizeof(DATA_FIELDS[0]); ++i)
    if (DATA_FIELDS[i] == number) return true;
  return false;
}

static o3_status_t broken_field(const char *what) {
  return o3_status_create(O3_STATUS_INVALID_MODEL, "a field of the model %s", what);
}

static o3_status_t rewrite_tensor(rewriter_t *self, const Onnx__TensorProto *tensor, const uint8_t *at,
                                  const uint8_t *end, size_t *total) {
  o3_onnx_field_t field;
  const void *data;
  size_t bytes;
  for (; at < end; at = field.end) {
    const char *broken = o3_onnx_wire_field(at, end, &field);
    if (broken) return broken_field(broken);
    if (is_data_field(field.number)) continue;
    O3_TRY(append(self, &self->out, field.start, (size_t)(field.end - field.start)));
    *total += (size_t)(field.end - field.start);
  }
  O3_TRY(current_data(self, tensor, &data, &bytes));
  if (tensor->data_location == EXTERNAL) return append_external(self, data, bytes, total);
  return append_field(self, RAW_DATA, data, bytes, total);
}

/* ---- Messages ---- */

static o3_status_t rewrite(rewriter_t *self, const ProtobufCMessageDescriptor *type, const uint8_t *at,
                           const uint8_t *end, size_t *total);

static o3_status_t rewrite_child(rewriter_t *self, const ProtobufCMessageDescriptor *type,
                                 const o3_onnx_field_t *field, size_t *total) {
  size_t place = self->out.count, length = 0;
  if (place == self->out.capacity) O3_TRY(grow(self, &self->out));
  self->out.items[self->out.count++] = (o3_file_piece_t){0};
  O3_TRY(rewrite(self, type, field->payload, field->end, &length));
  O3_TRY(make_header(self, field->number, length, &self->out.items[place]));
  *total += self->out.items[place].size + length;
  return NULL;
}

static o3_status_t rewrite_fields(rewriter_t *self, const ProtobufCMessageDescriptor *type, const uint8_t *at,
                                  const uint8_t *end, size_t *total) {
  o3_onnx_field_t field;
  for (; at < end; at = field.end) {
    const char *broken = o3_onnx_wire_field(at, end, &field);
    if (broken) return broken_field(broken);
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(type, field.number);
    if (known && known->type == PROTOBUF_C_TYPE_MESSAGE) {
      O3_TRY(rewrite_child(self, known->descriptor, &field, total));
    } else {
      O3_TRY(append(self, &self->out, field.start, (size_t)(field.end - field.start)));
      *total += (size_t)(field.end - field.start);
    }
  }
  return NULL;
}

static o3_status_t rewrite(rewriter_t *self, const ProtobufCMessageDescriptor *type, const uint8_t *at,
                           const uint8_t *end, size_t *total) {
  if (type == &onnx__tensor_proto__descriptor) {
    uintptr_t key = (uintptr_t)(at - self->model->file.data) + 1;
    const Onnx__TensorProto *tensor = o3_ptr_map_get(self->model->tensors, (void *)key);
    if (tensor && (tensor->data_location == EXTERNAL || o3_ptr_map_get(self->changed, tensor))) {
      self->needs_data |= tensor->data_location == EXTERNAL;
      return rewrite_tensor(self, tensor, at, end, total);
    }
  }
  return rewrite_fields(self, type, at, end, total);
}

/* ---- The files ---- */

static o3_status_t refuse_same(const char *read, const char *written) {
  struct stat a, b;
  if (stat(read, &a) || stat(written, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "output '%s' is '%s', which is read", written, read);
}

static o3_status_t check_external(const rewriter_t *self, const Onnx__TensorProto *tensor, const char *path) {
  for (size_t i = 0; i < tensor->n_external_data; ++i) {
    if (strcmp(tensor->external_data[i]->key, "location")) continue;
    const char *read = o3_arena_printf(self->model->arena, "%s/%s", self->model->storage.folder,
                                       tensor->external_data[i]->value);
    O3_TRY_ALLOC(read);
    O3_TRY(refuse_same(read, path));
  }
  return NULL;
}

/* Of the graph and those in its nodes' attributes. */
static o3_status_t check_graph(const rewriter_t *self, const Onnx__GraphProto *graph, const char *path) {
  for (size_t i = 0; i < graph->n_initializer; ++i) O3_TRY(check_external(self, graph->initializer[i], path));
  for (size_t i = 0; i < graph->n_node; ++i) {
    const Onnx__NodeProto *node = graph->node[i];
    for (size_t a = 0; a < node->n_attribute; ++a) {
      const Onnx__AttributeProto *attribute = node->attribute[a];
      if (attribute->t) O3_TRY(check_external(self, attribute->t, path));
      if (attribute->g) O3_TRY(check_graph(self, attribute->g, path));
      for (size_t g = 0; g < attribute->n_graphs; ++g) O3_TRY(check_graph(self, attribute->graphs[g], path));
    }
  }
  return NULL;
}

static o3_status_t check_outputs(const rewriter_t *self, const char *source, const char *path,
                                 const char *data_path) {
  O3_TRY(refuse_same(source, path));
  O3_TRY(check_graph(self, self->model->proto->graph, path));
  return check_graph(self, self->model->proto->graph, data_path);
}

static o3_status_t publish(const rewriter_t *self, const char *path, const char *data_path) {
  o3_prepared_file_t *data = NULL, *model;
  if (self->needs_data) O3_TRY(o3_file_prepare(data_path, self->data.items, self->data.count, &data));
  o3_status_t status = o3_file_prepare(path, self->out.items, self->out.count, &model);
  if (status) {
    o3_file_discard(data);
    return status;
  }
  return data ? o3_file_commit_pair(data, model) : o3_file_commit(model);
}

o3_status_t prune_write(prune_model_t *model, const char *source, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *data_path = o3_arena_printf(model->arena, "%s.data", path);
  rewriter_t self = {.model = model, .changed = o3_ptr_map_create(model->arena)};
  O3_TRY_ALLOC(data_path && self.changed);
  self.data_name = slash ? data_path + (slash + 1 - path) : data_path;
  for (int i = 0; i < model->num_layers; ++i) {
    prune_layer_t *layer = &model->layers[i];
    if (!layer->skipped) O3_TRY_ALLOC(o3_ptr_map_put(self.changed, layer->tensor, layer));
  }
  O3_TRY(check_outputs(&self, source, path, data_path));
  size_t total = 0;
  O3_TRY_CONTEXT(rewrite(&self, &onnx__model_proto__descriptor, model->file.data,
                         model->file.data + model->file.size, &total),
                 "'%s'", source);
  return publish(&self, path, data_path);
}
