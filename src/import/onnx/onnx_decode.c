/* protobuf-c copies every bytes field, and models are gigabytes of raw_data. So the file is walked first, on
 * the level of the wire format, and a skeleton is written: the same message, with each tensor's raw_data
 * replaced by two numbers that say where it lies in the file, and without the fields that onnx.proto does not
 * list. protobuf-c then unpacks the skeleton, which is small.
 *
 * The walk also guards protobuf-c, which recurses without a bound and cuts strings at a NUL byte. */
#include "import/onnx/onnx_decode.h"

#include <string.h>

#include "base/strbuf.h"
#include "import/onnx/onnx_wire.h"

/* protobuf-c refuses longer submessages. */
#define MAX_SKELETON_BYTES  INT32_MAX
#define RAW_DATA_FIELD      9
#define MAPPED_OFFSET_FIELD 1000
#define MAPPED_LENGTH_FIELD 1001
#define MAPPED_START_FIELD  1002

typedef struct walker {
  const uint8_t *file;
  o3_strbuf_t out;
} walker_t;

static void put_varint(walker_t *walker, uint64_t value) {
  uint8_t bytes[O3_ONNX_WIRE_MAX_VARINT];
  o3_strbuf_append(&walker->out, (const char *)bytes, o3_onnx_wire_varint(bytes, value));
}

static void put_tag(walker_t *walker, uint32_t number, uint32_t wire) {
  put_varint(walker, (uint64_t)number << 3 | wire);
}

static o3_status_t field_error(const walker_t *walker, const ProtobufCMessageDescriptor *type,
                               const o3_onnx_field_t *field, const char *what) {
  return o3_status_create(O3_STATUS_INVALID_MODEL, "field %u of %s at byte %zu %s", field->number,
                          type->short_name, (size_t)(field->start - walker->file), what);
}

static o3_status_t walk_message(walker_t *walker, const ProtobufCMessageDescriptor *type, const uint8_t *at,
                                const uint8_t *end, int depth);

/* The child's length is known only after it is written: five bytes are kept for it, filled as a padded
 * varint. */
static o3_status_t walk_child(walker_t *walker, const ProtobufCMessageDescriptor *type,
                              const o3_onnx_field_t *field, int depth) {
  put_tag(walker, field->number, O3_ONNX_WIRE_BYTES);
  size_t at = walker->out.length;
  o3_strbuf_append(&walker->out, "\x80\x80\x80\x80", 5);
  size_t start = walker->out.length;
  O3_TRY(walk_message(walker, type, field->payload, field->end, depth + 1));
  if (walker->out.failed) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  size_t length = walker->out.length - start;
  if (length > MAX_SKELETON_BYTES)
    return o3_status_create(
        O3_STATUS_UNSUPPORTED,
        "%s at byte %zu holds %zu bytes beside its tensors' raw data, at most %d are read", type->short_name,
        (size_t)(field->start - walker->file), length, MAX_SKELETON_BYTES);
  for (size_t i = 0; i < 5; ++i)
    walker->out.text[at + i] = (char)((length >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
  return NULL;
}

static o3_status_t walk_field(walker_t *walker, const ProtobufCMessageDescriptor *type,
                              const o3_onnx_field_t *field, int depth) {
  if (type == &onnx__tensor_proto__descriptor && field->number == RAW_DATA_FIELD) {
    if (field->wire != O3_ONNX_WIRE_BYTES) return field_error(walker, type, field, "is no byte string");
    put_tag(walker, MAPPED_OFFSET_FIELD, O3_ONNX_WIRE_VARINT);
    put_varint(walker, (uint64_t)(field->payload - walker->file));
    put_tag(walker, MAPPED_LENGTH_FIELD, O3_ONNX_WIRE_VARINT);
    put_varint(walker, (uint64_t)(field->end - field->payload));
    return NULL;
  }
  const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(type, field->number);
  if (!known || (type == &onnx__tensor_proto__descriptor && known->id >= MAPPED_OFFSET_FIELD)) return NULL;
  if (known->type == PROTOBUF_C_TYPE_MESSAGE) {
    if (field->wire != O3_ONNX_WIRE_BYTES) return field_error(walker, type, field, "is no message");
    return walk_child(walker, known->descriptor, field, depth);
  }
  if (known->type == PROTOBUF_C_TYPE_STRING && field->wire == O3_ONNX_WIRE_BYTES &&
      memchr(field->payload, 0, (size_t)(field->end - field->payload)))
    return field_error(walker, type, field, "is a string with a NUL byte in it");
  o3_strbuf_append(&walker->out, (const char *)field->start, (size_t)(field->end - field->start));
  return NULL;
}

static o3_status_t walk_message(walker_t *walker, const ProtobufCMessageDescriptor *type, const uint8_t *at,
                                const uint8_t *end, int depth) {
  if (depth > O3_ONNX_MAX_MESSAGE_DEPTH)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "%s at byte %zu is nested deeper than %d messages",
                            type->short_name, (size_t)(at - walker->file), O3_ONNX_MAX_MESSAGE_DEPTH);
  if (type == &onnx__tensor_proto__descriptor) {
    put_tag(walker, MAPPED_START_FIELD, O3_ONNX_WIRE_VARINT);
    put_varint(walker, (uint64_t)(at - walker->file));
  }
  while (at < end) {
    o3_onnx_field_t field;
    const char *broken = o3_onnx_wire_field(at, end, &field);
    if (broken) return field_error(walker, type, &field, broken);
    O3_TRY(walk_field(walker, type, &field, depth));
    at = field.end;
  }
  return NULL;
}

/* protobuf-c answers NULL for a broken message and for memory that is out; this tells which. */
typedef struct allocation {
  o3_arena_t *arena;
  bool failed;
} allocation_t;

static void *allocate(void *data, size_t size) {
  allocation_t *allocation = data;
  void *memory = o3_arena_alloc(allocation->arena, 1, size);
  allocation->failed |= !memory;
  return memory;
}

static void free_nothing(void *data, void *memory) {
  (void)data;
  (void)memory;
}

static o3_status_t unpack(o3_arena_t *arena, const o3_strbuf_t *skeleton, const Onnx__ModelProto **model) {
  if (skeleton->failed) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  allocation_t allocation = {.arena = arena};
  ProtobufCAllocator allocator = {allocate, free_nothing, &allocation};
  *model = onnx__model_proto__unpack(&allocator, skeleton->length, (const uint8_t *)skeleton->text);
  if (allocation.failed) return o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  if (!*model)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "a field has a wire type that is not its own");
  return NULL;
}

o3_status_t o3_onnx_decode(o3_arena_t *arena, const uint8_t *data, size_t size,
                           const Onnx__ModelProto **model) {
  *model = NULL;
  walker_t walker = {.file = data, .out = O3_STRBUF_INIT};
  o3_status_t status = walk_message(&walker, &onnx__model_proto__descriptor, data, data + size, 1);
  if (!status) status = unpack(arena, &walker.out, model);
  o3_strbuf_deinit(&walker.out);
  return status;
}
