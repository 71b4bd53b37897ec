/* External data. A model file is untrusted, so it must not make the compiler read files of its choice: the
 * location is relative, and what it resolves to, links followed, lies in the model's folder. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/onnx/onnx_tensor.h"

typedef struct external {
  const char *location;
  uint64_t offset, length;
  bool has_length;
} external_t;

static o3_status_t parse_size(const Onnx__StringStringEntryProto *entry, uint64_t *value) {
  char *end;
  errno = 0;
  *value = strtoull(entry->value, &end, 10);
  if (errno || *end || entry->value[0] < '0' || entry->value[0] > '9')
    return o3_status_create(O3_STATUS_INVALID_MODEL,
                            "external data has %s '%s', a number of bytes is expected", entry->key,
                            entry->value);
  return NULL;
}

/* Keys that say nothing about where the bytes are (checksum, basepath of some writers) are not read. */
static o3_status_t parse_external(const Onnx__TensorProto *tensor, external_t *external) {
  *external = (external_t){0};
  for (size_t i = 0; i < tensor->n_external_data; ++i) {
    const Onnx__StringStringEntryProto *entry = tensor->external_data[i];
    if (!strcmp(entry->key, "location")) external->location = entry->value;
    if (!strcmp(entry->key, "offset")) O3_TRY(parse_size(entry, &external->offset));
    if (!strcmp(entry->key, "length")) {
      O3_TRY(parse_size(entry, &external->length));
      external->has_length = true;
    }
  }
  if (!external->location || !*external->location)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "external data has no location");
  return NULL;
}

static bool has_parent_step(const char *path) {
  for (const char *at = path; *at;) {
    size_t length = strcspn(at, "/\\");
    if (length == 2 && at[0] == '.' && at[1] == '.') return true;
    at += length + (at[length] != 0);
  }
  return false;
}

/* |folder| and |resolved| are resolved paths. */
static o3_status_t check_inside(const char *location, const char *folder, const char *resolved) {
  size_t length = strlen(folder);
  bool inside = !strncmp(resolved, folder, length) && (resolved[length] == '/' || folder[length - 1] == '/');
  if (inside) return NULL;
  return o3_status_create(O3_STATUS_INVALID_MODEL, "external data file '%s' leads out of the model's folder",
                          location);
}

static o3_status_t resolve(o3_onnx_storage_t *storage, const char *location, const char **path) {
  *path = NULL;
  if (location[0] == '/' || has_parent_step(location))
    return o3_status_create(
        O3_STATUS_INVALID_MODEL,
        "external data file '%s' is not inside the model's folder: a relative path without '..' is expected",
        location);
  char *joined = o3_arena_printf(storage->arena, "%s/%s", storage->folder, location);
  O3_TRY_ALLOC(joined);
  char *folder = realpath(storage->folder, NULL);
  char *resolved = realpath(joined, NULL);
  int error = errno;
  o3_status_t status = NULL;
  if (!folder || !resolved) {
    status = o3_status_create(error == ENOMEM ? O3_STATUS_OUT_OF_MEMORY : O3_STATUS_NOT_FOUND,
                              "external data file '%s': %s", location, strerror(error));
  } else {
    status = check_inside(location, folder, resolved);
    *path = o3_arena_strdup(storage->arena, resolved);
    if (!status && !*path) status = o3_status_create(O3_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  free(folder);
  free(resolved);
  return status;
}

/* Each file is mapped once, and handed to the weights. */
static o3_status_t map_external(o3_onnx_storage_t *storage, const char *path, const o3_mapped_file_t **file) {
  *file = o3_str_map_get(storage->external, path, strlen(path));
  if (*file) return NULL;
  o3_mapped_file_t *seen = O3_ARENA_NEW(storage->arena, o3_mapped_file_t);
  O3_TRY_ALLOC(seen);
  o3_mapped_file_t mapped;
  O3_TRY(o3_file_map(path, &mapped));
  *seen = mapped;
  O3_TRY(o3_weights_keep_file(storage->weights, &mapped));
  *file = seen;
  O3_TRY_ALLOC(o3_str_map_put(storage->external, path, strlen(path), seen));
  return NULL;
}

static o3_status_t check_range(const external_t *external, size_t file_size, size_t expected) {
  if (external->offset > file_size)
    return o3_status_create(O3_STATUS_INVALID_MODEL,
                            "external data file '%s' has %zu bytes, the tensor starts at %llu",
                            external->location, file_size, (unsigned long long)external->offset);
  uint64_t rest = file_size - external->offset;
  uint64_t length = external->has_length ? external->length : rest;
  if (length > rest)
    return o3_status_create(
        O3_STATUS_INVALID_MODEL, "external data file '%s' has %zu bytes, the tensor needs %llu from %llu on",
        external->location, file_size, (unsigned long long)length, (unsigned long long)external->offset);
  if (length != expected)
    return o3_status_create(O3_STATUS_INVALID_MODEL, "external data has %llu bytes, type and dims need %zu",
                            (unsigned long long)length, expected);
  return NULL;
}

o3_status_t o3_onnx_external_data(o3_onnx_storage_t *storage, const Onnx__TensorProto *tensor,
                                  size_t expected, const void **data) {
  *data = NULL;
  if (!storage->folder)
    return o3_status_create(O3_STATUS_INVALID_MODEL,
                            "external data is not allowed in a model that is no file");
  external_t external;
  O3_TRY(parse_external(tensor, &external));
  const char *path;
  O3_TRY(resolve(storage, external.location, &path));
  const o3_mapped_file_t *file;
  O3_TRY(map_external(storage, path, &file));
  O3_TRY(check_range(&external, file->size, expected));
  *data = file->data + external.offset;
  return NULL;
}
