/* Build id: tells compiled models apart. The same model, options and compiler give the same id. */
#ifndef O3_PACKAGE_BUILD_ID_H
#define O3_PACKAGE_BUILD_ID_H

#include <llvm-c/blake3.h>
#include <stddef.h>

/* Hexadecimal characters of an id, without the terminating NUL. */
#define O3_BUILD_ID_LENGTH 32

typedef llvm_blake3_hasher o3_build_id_t;

void o3_build_id_init(o3_build_id_t *id);
/* Adds |size| bytes, with their number, so that "ab","c" and "a","bc" differ. */
void o3_build_id_add(o3_build_id_t *id, const void *data, size_t size);
void o3_build_id_add_text(o3_build_id_t *id, const char *text);
void o3_build_id_finish(const o3_build_id_t *id, char text[O3_BUILD_ID_LENGTH + 1]);

#endif
