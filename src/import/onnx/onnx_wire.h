/* protobuf's wire format, one field at a time. */
#ifndef O3_IMPORT_ONNX_ONNX_WIRE_H
#define O3_IMPORT_ONNX_ONNX_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { O3_ONNX_WIRE_VARINT = 0, O3_ONNX_WIRE_64 = 1, O3_ONNX_WIRE_BYTES = 2, O3_ONNX_WIRE_32 = 5 };
enum { O3_ONNX_WIRE_MAX_VARINT = 10 }; /* bytes */

/* One field: the whole of it lies from |start| to |end|, its bytes (O3_ONNX_WIRE_BYTES) from |payload| on. */
typedef struct o3_onnx_field {
  uint32_t number, wire;
  const uint8_t *start, *payload, *end;
} o3_onnx_field_t;

/* Reads the field at |at| of a message that ends at |end|. NULL, or what is wrong with it, after "field N".
 */
const char *o3_onnx_wire_field(const uint8_t *at, const uint8_t *end, o3_onnx_field_t *field);

/* Writes |value| as a varint; the number of bytes. */
size_t o3_onnx_wire_varint(uint8_t bytes[O3_ONNX_WIRE_MAX_VARINT], uint64_t value);

#endif
