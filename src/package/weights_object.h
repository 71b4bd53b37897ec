/* Weights object: the weights of a model as an ELF object, each under the symbol that the code calls it by.
 */
#ifndef O3_PACKAGE_WEIGHTS_OBJECT_H
#define O3_PACKAGE_WEIGHTS_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "ir/weights.h"

typedef struct o3_weight {
  const char *symbol; /* "o3w_..." */
  const void *data;   /* borrowed from the o3_weights_t */
  size_t bytes;
} o3_weight_t;

typedef struct o3_weight_list {
  const o3_weight_t *items;
  size_t count;
  uint64_t total_bytes;
  o3_weights_t *store; /* whose data they are; NULL: of none that gives memory back */
} o3_weight_list_t;

/* The weights named by the module's attribute `o3.weights = [{symbol = "o3w_a", value = dense_resource<a> :
 * ...}]` that the back end leaves; an absent attribute is an empty list. The list is allocated in |arena|. */
o3_status_t o3_weight_list_read(o3_arena_t *arena, MlirModule module, o3_weights_t *weights,
                                o3_weight_list_t *list) O3_MUST_USE;

/* Writes an ELF64 x86-64 relocatable object to |path|: section .lrodata (read-only data that may lie further
 * than 2 GB from the code), each weight 64-byte aligned under its hidden global symbol. Bytes go from where
 * they lie to the file; sizes are limited by the disk only. Without |bytes| the section has only its size,
 * for o3_weights_library_write. */
o3_status_t o3_weights_object_write(const char *path, const o3_weight_list_t *list, bool bytes) O3_MUST_USE;

/* Writes to |path| the shared library |linked|, which was linked with the object of |list| without bytes,
 * with them. INTERNAL when the linker has not put .lrodata at the end of a segment. */
o3_status_t o3_weights_library_write(const char *linked, const char *path, const o3_weight_list_t *list)
    O3_MUST_USE;

#endif
