/* BLAKE3, because gigabytes of weights go through it and LLVM brings it along. */
#include "package/build_id.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

void o3_build_id_init(o3_build_id_t *id) { llvm_blake3_hasher_init(id); }

void o3_build_id_add(o3_build_id_t *id, const void *data, size_t size) {
  uint64_t length = size;
  llvm_blake3_hasher_update(id, &length, sizeof(length));
  llvm_blake3_hasher_update(id, data, size);
}

void o3_build_id_add_text(o3_build_id_t *id, const char *text) { o3_build_id_add(id, text, strlen(text)); }

void o3_build_id_finish(const o3_build_id_t *id, char text[O3_BUILD_ID_LENGTH + 1]) {
  uint8_t hash[O3_BUILD_ID_LENGTH / 2];
  llvm_blake3_hasher_finalize(id, hash, sizeof(hash));
  for (size_t i = 0; i < sizeof(hash); ++i) snprintf(text + 2 * i, 3, "%02x", hash[i]);
}
