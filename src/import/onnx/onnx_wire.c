#include "import/onnx/onnx_wire.h"

/* The position after the varint at |at|, or NULL when it is cut off or longer than 64 bits. */
static const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
    *value |= (uint64_t)(*at & 0x7f) << shift;
    if (!(*at++ & 0x80)) return at;
  }
  return NULL;
}

static const uint8_t *skip_bytes(const uint8_t *at, const uint8_t *end, uint64_t count) {
  return (uint64_t)(end - at) < count ? NULL : at + count;
}

const char *o3_onnx_wire_field(const uint8_t *at, const uint8_t *end, o3_onnx_field_t *field) {
  uint64_t tag, value;
  *field = (o3_onnx_field_t){.start = at};
  at = read_varint(at, end, &tag);
  if (!at || tag > UINT32_MAX || tag < 8) return "has no valid tag";
  field->number = (uint32_t)tag >> 3;
  field->wire = tag & 7;
  if (field->wire == O3_ONNX_WIRE_VARINT) {
    field->end = read_varint(at, end, &value);
  } else if (field->wire == O3_ONNX_WIRE_64 || field->wire == O3_ONNX_WIRE_32) {
    field->end = skip_bytes(at, end, field->wire == O3_ONNX_WIRE_64 ? 8 : 4);
  } else if (field->wire == O3_ONNX_WIRE_BYTES) {
    field->payload = read_varint(at, end, &value);
    field->end = field->payload ? skip_bytes(field->payload, end, value) : NULL;
  } else {
    return "has a wire type that ONNX does not use";
  }
  return field->end ? NULL : "reaches past the end of its message";
}

size_t o3_onnx_wire_varint(uint8_t bytes[O3_ONNX_WIRE_MAX_VARINT], uint64_t value) {
  size_t count = 0;
  do {
    bytes[count++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value);
  return count;
}
