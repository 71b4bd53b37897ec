/* From the bytes of an .onnx file to its protobuf messages, without copying the weights. */
#ifndef O3_IMPORT_ONNX_ONNX_DECODE_H
#define O3_IMPORT_ONNX_ONNX_DECODE_H

#include <stdint.h>

#include "base/arena.h"
#include "onnx.pb-c.h"

/* Messages nested deeper than this are refused, as protobuf's own readers do. */
#define O3_ONNX_MAX_MESSAGE_DEPTH 100

/* Decodes the |size| bytes at |data|. The messages lie in |arena|. A tensor's raw_data is not in them: it is
 * the mapped_length bytes at data + mapped_offset (both checked), and its message begins at data +
 * mapped_start. INVALID_MODEL says which field is broken and at which byte. */
o3_status_t o3_onnx_decode(o3_arena_t *arena, const uint8_t *data, size_t size,
                           const Onnx__ModelProto **model) O3_MUST_USE;

#endif
